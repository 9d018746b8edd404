import { resolve } from 'node:path'
import {
  createLimiter,
  createSemaphore,
  fixedWindow,
  memoryStore,
  PolicyError,
  SluiceError,
} from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { fleetTopKeys, lastDenials } from '@sluice/metrics'
import { createQueue } from '@sluice/outbound'
import { wrongCommands } from '../command-line.js'
import { startMember } from '../fleet.js'
import type { Outcome, Row } from '../row.js'
import type { WindowsJob } from '../workers/windows.js'

/**
 * Hostile keys are ordinary keys; hostile costs throw a typed error and admit nothing; options that do not exist throw one that
 * says what to write; windows that look like seconds are warned of once; what is no Redis client is no store; what strangers have named leaves
 * `sluice` harmless, and overwrites nothing.
 */
export const row: Row = { number: 21, fault: 'input', run: input }

const KEYS = [
  '__proto__',
  'constructor',
  '',
  '\0',
  '\ud800',
  '\udfff',
  '{a}',
  '%',
  ':',
  'a\r\nb',
  'é',
  'x'.repeat(200),
]
const LONGEST_KEY = 'x'.repeat(8192)
const HUGE_KEY = 'x'.repeat(1 << 20)
const BAD_COSTS: unknown[] = [NaN, -1, 1.5, '3', Infinity, 2 ** 53, 1n, null, {}, [], true, 1e308]
/** The objects that are made with one option too many. */
const MAKERS: ((option: object) => unknown)[] = [
  (option) => fixedWindow({ limit: 1, window: '1s', ...option }),
  (option) => createLimiter({ policies: [fixedWindow({ limit: 1, window: '1s' })], ...option }),
  (option) => createSemaphore({ limit: 1, ...option }),
  (option) => redisStore('redis://127.0.0.1:1', { lazy: true, ...option }),
  (option) => createQueue({ semaphore: createSemaphore({ limit: 1 }), ...option }),
]
const FOREIGN = ['max', 'windowMs', 'concurrency', 'keyPrefix'] // of other packages
const UNKNOWN_OPTIONS = ['__proto__', 'constructor', 'toString', '', 'Limit', 'limits', ...FOREIGN]
/** Each would be a connection to whatever Redis is on 127.0.0.1. */
const NO_CLIENTS: unknown[] = [
  undefined,
  null,
  5,
  true,
  {},
  [],
  new Map(),
  memoryStore,
  Promise.resolve(),
  { client: {} },
]
const HOSTILE_POSTS = [
  '{',
  'null',
  '{"format":1,"posts":7}',
  '{"format":1,"posts":[null]}',
  '{"format":1,"posts":[{"limiter":"input","size":0,"denied":{},"sampled":{},"decisions":[]}]}',
  '{"format":1,"posts":[],"denials":7}',
  '{"format":1,"posts":[],"denials":[["id","input","policy","key","limit",-1,0]]}',
]
const BAD_KEYS: unknown[] = [undefined, null, 1, 1n, {}, [], Symbol('k'), () => 'k']

/**
 * Calls with keys of every strange kind, and with costs and options that are invalid. Passes if each key is counted apart, and
 * what is invalid is refused by an error of ours. `share` is the part of the full load, 0 to 1.
 */
async function input(share: number): Promise<Outcome> {
  const calls = 100_000 * share
  const store = memoryStore()
  const limiter = createLimiter({
    name: 'input',
    store,
    policies: [fixedWindow({ limit: 1, window: '365d' })],
  })
  await limiter.consume('witness')
  const wrong: string[] = []
  const expectThrown = (call: () => unknown, what: string): void => {
    try {
      call()
      wrong.push(`${what} was admitted`)
    } catch (error) {
      if (!(error instanceof SluiceError)) wrong.push(`${what} threw ${String(error)}`)
    }
  }
  for (let i = 0; i < calls; i++) {
    const key = `${KEYS[i % KEYS.length]}${i < KEYS.length ? '' : i}`
    expectThrown(
      () => limiter.decide(key, { cost: BAD_COSTS[i % BAD_COSTS.length] as number }),
      `a cost for key ${i}`,
    )
    expectThrown(() => limiter.decide(BAD_KEYS[i % BAD_KEYS.length] as string), `key ${i}`)
    const [first, second] = [await limiter.consume(key), await limiter.consume(key)]
    if (!first.allowed || second.allowed) wrong.push(`key ${i} was not counted apart`)
  }
  if (!(await limiter.consume(LONGEST_KEY)).allowed || (await limiter.consume(LONGEST_KEY)).allowed) {
    wrong.push('a key of 8,192 units was not counted')
  }
  expectThrown(() => limiter.decide(HUGE_KEY), 'a key of 1 MB')
  if (store.size !== calls + 2) wrong.push(`${store.size} keys are held for ${calls + 2}`)
  if ((await limiter.consume('witness')).allowed) wrong.push('another key was touched')
  await limiter.close()
  for (const client of NO_CLIENTS)
    expectThrown(() => redisStore(client as string), `a store over ${typeof client}`)
  wrong.push(
    ...wrongOptions(),
    ...(await wrongWindows()),
    ...(await wrongPosts()),
    ...(await wrongCommands()),
  )
  return {
    pass: wrong.length === 0,
    figure: `${calls} hostile keys and costs, options, posts on the board, and files of sluice: ${wrong[0] ?? 'every one kept apart or refused'}`,
  }
}

/** The mistakes in the errors for options that do not exist. */
function wrongOptions(): string[] {
  const near = messageOf(() => fixedWindow({ limit: 1, window: '1s', limits: 2 } as never))
  const wrong = near.includes("did you mean 'limit'?") ? [] : [`option "limits": ${near}`]
  const unknown = UNKNOWN_OPTIONS.flatMap((name) =>
    MAKERS.flatMap((make, i) => {
      const message = messageOf(() => make({ [name]: 1 }))
      const isRight =
        message.startsWith(`there is no option '${name}' of`) &&
        /npx @sluice\/cli option |hand in a client/.test(message)
      return isRight ? [] : [`option ${JSON.stringify(name)} of maker ${i}: ${message}`]
    }),
  )
  return [...wrong, ...unknown]
}

/** The mistakes in the warning about windows that are meant in seconds. */
async function wrongWindows(): Promise<string[]> {
  const job: WindowsJob = { windows: ['60ms', 1000, 60, 3600] }
  const member = await startMember('packages/faults/src/workers/windows.ts', resolve('.'))
  await member.prepare(job)
  const warned = (await member.go()) as readonly string[]
  await member.end()
  return warned.length === 1 && warned[0]!.includes('1m')
    ? []
    : [`windows in seconds: warned ${warned.join(', ')}`]
}

/** The mistakes in the lists of a fleet, on whose board somebody else has written. */
async function wrongPosts(): Promise<string[]> {
  const store = memoryStore()
  for (const [author, text] of HOSTILE_POSTS.entries()) {
    await store.board!('top-keys').post(String(author), text, 30_000)
  }
  const { processes, malformed, denied } = await fleetTopKeys(store, 'input')
  const { denials } = await lastDenials(store)
  await store.close()
  const shown = processes + denied.length + denials.length
  const isRight = shown === 0 && malformed === HOSTILE_POSTS.length
  return isRight ? [] : [`${malformed} of ${HOSTILE_POSTS.length} malformed posts were counted`]
}

/** The message of the error with which an option is refused; 'was ignored' if it is not. */
function messageOf(make: () => unknown): string {
  try {
    make()
    return 'was ignored'
  } catch (error) {
    return error instanceof PolicyError && error.code === 'INVALID_OPTION' ? error.message : String(error)
  }
}
