import type { Store } from '../stores/store.js'
import { type Duration, parseDuration } from '../values/duration.js'
import { expected, InputError, PolicyError } from '../values/errors.js'
import { checkOptionNames, each, type Replacements } from '../values/option-names.js'

export interface SemaphoreOptions {
  /**
   * Semaphores of one name in one store share their permits. 1 to 64 characters of printable ASCII; required with a
   * `store`.
   * @default 'default'
   */
  readonly name?: string
  /** Most permits held at once, for each key: a whole number from 1 to 1,000,000. */
  readonly limit: number
  /**
   * How long a permit stays taken after its process died, 1 s to 1 hour. A process that lives renews its permits. Not used
   * with a memory store.
   * @default '30s'
   */
  readonly lease?: Duration
  /**
   * Where permits are kept.
   * @default a `memoryStore()` of its own, which `close()` closes too
   */
  readonly store?: Store
  /**
   * The longest the store may take to answer a call, 1 ms to 1 minute.
   * @default '50ms'
   */
  readonly deadline?: Duration
  /**
   * Called with the key of a permit that was lost while it was held: the store lost its data, and others took all permits
   * before this one was renewed. Its errors are thrown as uncaught exceptions.
   */
  readonly onLost?: (key: string) => void
}

export interface SemaphoreAcquireOptions {
  /**
   * The longest to wait for a permit, up to 1 day. With 0 the call is denied at once if no permit is free.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /** Takes the call out of the queue and rejects it with the signal's reason. */
  readonly signal?: AbortSignal
}

const LIMIT = "it is called 'limit'"
const LEASE = "it is called 'lease'"
const RATE = 'a semaphore bounds how many run at once: for a rate use createLimiter()'
const REDIS = 'write store: redisStore(client), of @sluice/core/redis'
const CALL = 'it belongs to acquire(key, { maxWait, signal })'
const QUEUE = 'it belongs to createQueue() of @sluice/outbound'

/** What other packages call the options. docs/migrate has a page for each package with all of its options. */
const REPLACEMENTS: Replacements = {
  ...each(['maxConcurrent', 'concurrency', 'max', 'permits', 'capacity', 'count'], LIMIT),
  ...each(['ttl', 'lockTimeout', 'expiration'], LEASE),
  ...each(['minTime', 'interval', 'intervalCap', 'window', 'reservoir', 'reservoirRefreshAmount'], RATE),
  ...each(['reservoirRefreshInterval', 'duration', 'points', 'policies'], RATE),
  ...each(['datastore', 'clientOptions', 'storeClient', 'redis', 'client'], REDIS),
  ...each(['key', 'maxWait', 'signal', 'timeout', 'acquireTimeout'], CALL),
  ...each(['priority', 'highWater', 'maxQueue', 'strategy', 'queueClass', 'autoStart'], QUEUE),
  id: "it is called 'name'",
}

const OPTIONS: Record<keyof SemaphoreOptions, true> = {
  name: true,
  limit: true,
  lease: true,
  store: true,
  deadline: true,
  onLost: true,
}

/**
 * @throws {PolicyError} INVALID_OPTION for an option that there is not and an `onLost` that is no function; NAME_REQUIRED for a
 * store without a name.
 */
export function checkSemaphoreOptions(options: SemaphoreOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'createSemaphore takes an object of options', options)
  }
  checkOptionNames(options, OPTIONS, REPLACEMENTS)
  const { name, store, onLost } = options
  if (store !== undefined && name === undefined) {
    throw new PolicyError(
      'NAME_REQUIRED',
      'a semaphore with a store needs a name: others may share the store',
    )
  }
  if (onLost !== undefined && typeof onLost !== 'function') {
    throw expected(PolicyError, 'INVALID_OPTION', 'onLost must be a function', onLost)
  }
}

/** @throws {PolicyError} INVALID_LIMIT. */
export function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_PERMITS) return limit
  throw expected(
    PolicyError,
    'INVALID_LIMIT',
    `limit must be a whole number from 1 to ${MOST_PERMITS}`,
    limit,
  )
}

const MOST_PERMITS = 1_000_000

/** @throws {InputError} INVALID_DURATION, also for options that are no object: some packages take the wait itself. */
export function maxWaitMsOf(options: SemaphoreAcquireOptions): number {
  if (typeof options !== 'object' || options === null) {
    const what = "the options of a call must be an object like { maxWait: '10s' }"
    throw expected(InputError, 'INVALID_DURATION', what, options)
  }
  const { maxWait = '30s' } = options
  return parseDuration(maxWait, 'maxWait', { least: 0, most: LONGEST_WAIT_MS, error: InputError })
}

const LONGEST_WAIT_MS = 86_400_000
