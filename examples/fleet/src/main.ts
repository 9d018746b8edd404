import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { check } from './check.js'
import { display } from './display.js'
import { LIMIT } from './limit.js'
import { Member } from './member.js'
import { type Options, readOptions, USAGE, UsageError } from './options.js'
import { NoRedis, openRedis } from './redis-server.js'

/** What each of the four processes asks for, in calls a second: 100 together, where 10 would be their share. */
const DEMANDS = [10, 20, 30, 40]

process.exitCode = await main(process.argv.slice(2))

/** Returns the exit code: 0 when the total was right, 1 when it was not or there is no Redis, 2 for misuse. */
async function main(args: string[]): Promise<number> {
  try {
    const options = readOptions(args)
    if (options !== 'help') return await run(options)
    console.log(USAGE)
    return 0
  } catch (error) {
    if (error instanceof NoRedis) console.error(error.message)
    else if (error instanceof UsageError) console.error(`${error.message}\n\n${USAGE}`)
    else throw error
    return error instanceof UsageError ? 2 : 1
  }
}

async function run({ even, seconds }: Options): Promise<number> {
  const stop = stopSignal()
  const redis = await openRedis()
  const key = `example ${randomUUID()}`
  const members = DEMANDS.map((callsPerSecond) => new Member({ url: redis.url, key, even, callsPerSecond }))
  try {
    await Promise.all(members.map((member) => member.ready()))
    const finish = display(
      `${members.length} processes share ${LIMIT} calls a minute in ${redis.what}`,
      members,
    )
    for (const member of members) member.begin()
    await sleep(seconds * 1000, undefined, { signal: stop }).catch(() => {})
    await Promise.all(members.map((member) => member.end()))
    finish()
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await redis.stop()
  }
  const verdict = check(
    members.map(({ tally }) => tally),
    even,
  )
  console.log(`\n${verdict.text}`)
  return verdict.held && members.every(({ endedWell }) => endedWell) ? 0 : 1
}

/** Aborts at Ctrl-C or SIGTERM, and when nobody reads the output any more. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  // Each may come twice, since npm passes on what the terminal has already sent.
  process.on('SIGINT', stop).on('SIGTERM', stop)
  process.stdout.on('error', stop)
  return controller.signal
}
