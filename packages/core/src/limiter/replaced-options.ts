import { PolicyError } from '../values/errors.js'

/** What to write in place of an option, by its former name here or its name in another package. */
export type Replacements = Readonly<Record<string, string>>

const POLICY = 'write policies: [slidingLog({ limit, window })]'
const REDIS = 'write store: redisStore(client), of @sluice/core/redis'
const QUEUE = 'it belongs to createQueue() of @sluice/outbound'
const PENALTY = "write penalty: { after: 3, block: '10m' }"
const REQUEST = 'it belongs to rateLimit() of an adapter: see docs/http.md'

/** Of createLimiter. docs/migrate has a page for each package with all of its options. */
export const LIMITER_REPLACEMENTS: Replacements = {
  ...each(
    ['limit', 'window', 'windowMs', 'max', 'points', 'duration', 'ttl', 'timeWindow', 'interval'],
    POLICY,
  ),
  ...each(['intervalCap', 'reservoir', 'reservoirRefreshAmount', 'reservoirRefreshInterval'], POLICY),
  ...each(
    ['reservoirIncreaseAmount', 'reservoirIncreaseInterval', 'reservoirIncreaseMaximum'],
    "write policies: [tokenBucket({ limit, window, capacity, refill: 'interval' })]",
  ),
  minTime: 'write policies: [gcra({ limit: 1, window: minTime, burst: 1 })]',
  execEvenly: 'write policies: [gcra({ limit, window, burst: 1 })], and wait with acquire()',
  execEvenlyMinDelayMs: 'write policies: [gcra({ limit, window, burst: 1 })], and wait with acquire()',
  ...each(['maxConcurrent', 'concurrency'], 'use createSemaphore({ limit })'),
  ...each(['highWater', 'strategy', 'trackDoneStatus', 'rejectOnDrop', 'carryoverConcurrencyCount'], QUEUE),
  ...each(['autoStart', 'queueClass'], QUEUE),
  ...each(
    ['storeClient', 'redis', 'storage', 'sendCommand', 'datastore', 'clientOptions', 'driver', 'db'],
    REDIS,
  ),
  ...each(['client', 'useRedisPackage', 'useRedis3AndLowerPackage'], REDIS),
  ...each(['keyPrefix', 'nameSpace', 'identifier'], "write name, which begins the limiter's keys"),
  insuranceLimiter: "write onStoreError: 'local', which is the default",
  ...each(['skipOnError', 'passOnStoreError'], "write onStoreError: 'allow'"),
  rejectIfRedisNotReady: "write deadline and onStoreError: 'throw'",
  ...each(
    ['inmemoryBlockOnConsumed', 'inMemoryBlockOnConsumed', 'inMemoryBlockDuration'],
    'omit it: denials are remembered',
  ),
  ...each(['blockDuration', 'ban', 'exponentialBackoff', 'continueExceeding'], PENALTY),
  ...each(
    ['key', 'cost', 'skip', 'allow', 'deny', 'onDenied', 'onExceeded', 'shouldCharge', 'headers'],
    REQUEST,
  ),
  ...each(['keyGenerator', 'standardHeaders', 'legacyHeaders', 'handler', 'message', 'statusCode'], REQUEST),
  ...each(['skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful'], REQUEST),
}

/** An error for an option that does not exist, with what to write in its place if that is known. */
export function noSuchOption(name: string, replacements: Replacements): PolicyError {
  const known = Object.hasOwn(replacements, name) ? replacements[name] : undefined
  return new PolicyError('INVALID_OPTION', `there is no option '${name}'${known ? `: ${known}` : ''}`)
}

/** The same replacement for several options. */
export function each(names: readonly string[], replacement: string): Replacements {
  return Object.fromEntries(names.map((name) => [name, replacement]))
}
