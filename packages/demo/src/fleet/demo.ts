import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Demo } from '../demo.js'
import { readOptions } from '../options.js'
import { openRedis } from '../redis-server.js'
import { verdict } from '../terminal/paint.js'
import { show } from '../terminal/show.js'
import { check, LIMIT } from './check.js'
import { Member } from './member.js'
import { view } from './screen.js'

/** The demand of each of the four processes, in calls a second: 100 together, where 10 would be their share. */
const DEMANDS = [10, 20, 30, 40]

export const fleet: Demo = {
  usage: `Usage: npm run demo -- fleet [options]

Four processes share one limit of ${LIMIT} calls a minute in one Redis, and show who
gets what. Uses the Redis that REDIS_URL names, or else starts one of its own.

  --even         wait for turns, one each 100 ms, in place of being denied
  --seconds N    how long, 1 to 50 (default: 20)
  --help         show this`,

  async run(args, stop) {
    // Within one minute, so that there is one right total.
    const { even, seconds } = readOptions(args, {
      even: 'flag',
      seconds: { least: 1, most: 50, default: 20 },
    })
    const redis = await openRedis()
    const account = `demo ${randomUUID()}`
    const members = DEMANDS.map((demand) => new Member(redis.url, account, even ? 0 : demand))
    const title = `${members.length} processes share ${LIMIT} calls a minute`
    try {
      await Promise.all(members.map(({ begun }) => begun))
      const finish = show(view(title, redis.what, members))
      const over = sleep(seconds * 1000, undefined, { signal: stop, ref: false }).catch(() => {})
      await Promise.race([over, ...members.map(({ gone }) => gone)])
      await Promise.all(members.map((member) => member.end()))
      finish()
    } finally {
      await Promise.all(members.map((member) => member.end()))
      await redis.stop()
    }
    const { held, text } = check(
      members.map(({ tally }) => tally),
      even,
    )
    console.log(`\n${verdict(held, text)}`)
    return held && members.every(({ endedWell }) => endedWell)
  },
}
