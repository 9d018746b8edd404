import { each, type Replacements } from '../values/option-names.js'

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
