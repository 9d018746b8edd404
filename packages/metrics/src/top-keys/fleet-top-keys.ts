import { type Duration, PolicyError, type Store, StoreError } from '@sluice/core'
import { duration, readOptions } from '@sluice/core/internal'
import { summed, type DecisionCount } from './decision-counts.js'
import { type PostedLimit, postsOf, type ReadPosts } from './post.js'
import { boardOf } from './posting.js'
import { scaled } from './sampling.js'
import { type KeyCount, sorted } from './space-saving.js'
import { mergeSummaries } from './summary.js'

/** The counts of a limiter in all processes of a fleet, each over the window of its `topKeys`. */
export interface FleetTopKeys {
  /** Processes that wrote within the last 30 s. */
  readonly processes: number
  /** Posts of any limiter that cannot be read. They are left out. */
  readonly malformed: number
  /** The keys with the most denied calls. */
  readonly denied: readonly KeyCount[]
  /** The keys with the most calls, of a sample of 1 in 16: `error` includes the sampling. */
  readonly all: readonly KeyCount[]
  /** All decisions, by binding policy and result. */
  readonly decisions: readonly DecisionCount[]
}

const FLEET_TOP_KEYS = { deadline: duration('1ms', '1m', '5s') }

/**
 * Merges the top keys of all processes that count those of a limiter with `topKeys(limiter, { fleet: store })`. A key came at
 * most `count` times and at least `count - error` times. `limiter` is its name. The processes need not include this one.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION; StoreError when the store does not answer within `deadline`
 * (default 5 s).
 * @example
 * import { createLimiter, gcra, memoryStore } from '@sluice/core'
 * import { fleetTopKeys, topKeys } from '@sluice/metrics'
 * const store = memoryStore() // redisStore(url)
 * const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 2, window: '1m' })], store })
 * topKeys(limiter, { fleet: store, hashKeys: true })
 * console.log(await fleetTopKeys(store, 'api')) // the first counts come after 10 s
 */
export async function fleetTopKeys(
  store: Store,
  limiter: string,
  options: {
    /** A number is in milliseconds. */
    readonly deadline?: Duration
  } = {},
): Promise<FleetTopKeys> {
  if (typeof limiter !== 'string') {
    throw new PolicyError('INVALID_OPTION', "fleetTopKeys takes a store and a limiter's name")
  }
  const { deadline } = readOptions(FLEET_TOP_KEYS, options, { what: 'fleetTopKeys' })
  const processes = await postsIn(store, deadline)
  const postsByProcess = processes.map((process) => process.posts.filter((post) => post.limiter === limiter))
  const posts = postsByProcess.flat()
  // The smallest: a summary of fewer keys says less of what it missed.
  const size = Math.min(...posts.map((post) => post.size))
  /** The heaviest keys of the whole fleet, by denied calls or by sampled calls: the lists of all processes merged into one. */
  const merged = (which: 'denied' | 'sampled'): readonly KeyCount[] => {
    const summaries = posts.map((post) => post[which])
    return mergeSummaries(summaries, size).keys
  }
  return {
    processes: postsByProcess.filter((ofProcess) => ofProcess.length > 0).length,
    malformed: processes.reduce((sum, { malformed }) => sum + malformed, 0),
    denied: sorted(merged('denied')),
    all: sorted(merged('sampled').map(scaled)),
    decisions: summed(posts.flatMap((post) => post.decisions)),
  }
}

/**
 * The limits of each limiter whose top keys processes share in a store, by its name: those that one of them was made with.
 * @throws {PolicyError} INVALID_OPTION; StoreError when the store does not answer within 5 s.
 */
export async function fleetLimits(store: Store): Promise<ReadonlyMap<string, readonly PostedLimit[]>> {
  const posts = (await postsIn(store)).flatMap((own) => own.posts)
  return new Map(posts.flatMap(({ limiter, limits }) => (limits ? [[limiter, limits] as const] : [])))
}

/**
 * Reads what each process has posted in a store. The store must answer within `ms` milliseconds: its own time-outs do not suffice,
 * since a Redis client may keep a command for as long as its server is away.
 * @throws {PolicyError} INVALID_OPTION for a store without boards; {StoreError} STORE_TIMEOUT.
 */
export async function postsIn(store: Store, ms = 5000): Promise<readonly ReadPosts[]> {
  const board = boardOf(store)
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreError('STORE_TIMEOUT', `no answer within ${ms} ms`)), ms)
  })
  try {
    return (await Promise.race([board.read(), late])).map(postsOf)
  } finally {
    clearTimeout(timer)
  }
}
