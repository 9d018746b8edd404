import { expected, PolicyError } from '../../values/errors.js'
import { checkOptionNames, each, type Replacements } from '../../values/option-names.js'
import type { PolicyOptions } from './policy.js'

const LIMIT = "it is called 'limit'"
const WINDOW = "it is called 'window': a text such as '1m', or milliseconds"
const RATE = 'write limit and window, which give the rate'
const MOST_AT_ONCE =
  "it is called 'capacity' of tokenBucket and leakyBucket, 'burst' of gcra; other algorithms have none"
const LIMITER = 'it belongs to createLimiter()'
const CALL = 'it belongs to a call: limiter.consume(key, { cost }), or to rateLimit() of an adapter'

/** Of the factories of policies. */
const POLICY_REPLACEMENTS: Replacements = {
  ...each(['max', 'points', 'requests', 'intervalCap', 'tokensPerInterval', 'reservoir'], LIMIT),
  ...each(['windowMs', 'duration', 'ttl', 'timeWindow', 'interval', 'period', 'refillInterval'], WINDOW),
  ...each(['reservoirRefreshAmount', 'reservoirIncreaseAmount', 'refillAmount'], LIMIT),
  ...each(['reservoirRefreshInterval', 'reservoirIncreaseInterval'], WINDOW),
  ...each(['rate', 'refillRate', 'fillRate', 'leakRate', 'drainRate'], RATE),
  ...each(['capacity', 'burst', 'maxBurst', 'bucketSize', 'reservoirIncreaseMaximum'], MOST_AT_ONCE),
  minTime: 'write gcra({ limit: 1, window: minTime, burst: 1 })',
  precision: "it is called 'buckets', of slidingWindow",
  ...each(['store', 'onStoreError', 'deadline', 'leases', 'penalty', 'enforce', 'keyPrefix'], LIMITER),
  ...each(['storeClient', 'redis', 'insuranceLimiter'], LIMITER),
  blockDuration: "write penalty: { after: 3, block: '10m' } in createLimiter()",
  ...each(['key', 'cost', 'weight', 'keyGenerator', 'skip'], CALL),
  ...each(['maxConcurrent', 'concurrency'], 'use createSemaphore({ limit })'),
}

const KNOWN: Record<keyof PolicyOptions, true> = { limit: true, window: true, name: true }

/**
 * `own` has the options of one factory beside those of every policy.
 * @throws {PolicyError} INVALID_OPTION for an option that the factory does not have.
 */
export function checkPolicyOptions<Options extends PolicyOptions>(
  options: Options,
  own: Record<Exclude<keyof Options, keyof PolicyOptions>, true>,
): void {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'a policy takes an object with limit and window', options)
  }
  checkOptionNames(options, { ...KNOWN, ...own }, POLICY_REPLACEMENTS)
}
