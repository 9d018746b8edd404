import { createLimiter, gcra, slidingLog } from '@sluice/core'
import { measured } from '../../algorithms.js'
import { GENEROUS } from '../../contender.js'

/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */

/** @type {Record<string, (limit: Limit) => Contender>} */
export const sluice = {
  'Sluice, await consume': (limit) => {
    const limiter = createLimiter({ policies: [policy(limit)] })
    return { call: (key) => limiter.consume(key), allowed }
  },
  'Sluice, decide': (limit) => {
    const limiter = createLimiter({ policies: [policy(limit)] })
    return { call: (key) => limiter.decide(key), allowed, sync: true }
  },
  'Sluice log, decide': (limit) => {
    const limiter = createLimiter({ policies: [logPolicy(limit)] })
    return { call: (key) => limiter.decide(key), allowed, sync: true }
  },
  'Sluice, all algorithms, decide': (limit) => {
    const given = { limit: limit.limit, window: limit.windowMs }
    const plain = measured.filter(({ isPlain }) => isPlain)
    const limiters = plain.map(({ isLog, policy: plainPolicy }) =>
      createLimiter({ policies: [isLog ? logPolicy(limit) : plainPolicy(given)] }),
    )
    // By the last digit of the key, so that limiters take turns and a key stays with its own.
    const limiterOf = (/** @type {string} */ key) =>
      limiters[key.charCodeAt(key.length - 1) % limiters.length]
    return { call: (key) => limiterOf(key)?.decide(key), allowed, sync: true }
  },
  'Sluice, three policies': (limit) => {
    const policies = [
      policy(limit),
      gcra({ limit: 100_000_000, window: '2h' }),
      gcra({ limit: 50_000_000, window: '1d' }),
    ]
    const limiter = createLimiter({ policies })
    return { call: (key) => limiter.consume(key), allowed }
  },
  'Sluice, decide, denied': () => denying(),
  'Sluice, decide, blocked by a penalty': () => denying({ block: '1h' }),
}

/** Denies every call of a key that has used up its limit. @param {import('@sluice/core').PenaltyOptions} [penalty] @returns {Contender} */
function denying(penalty) {
  const policies = [gcra({ limit: 1, window: '1d' })]
  const limiter = createLimiter({ policies, ...(penalty && { penalty: { after: 1, ...penalty } }) })
  const reason = penalty ? 'blocked' : 'limit'
  let isFirst = true
  const call = (/** @type {string} */ key) => {
    if (isFirst) for (let i = 0; i < 2; i++) void limiter.decide(key)
    isFirst = false
    return limiter.decide(key)
  }
  const isExpected = (/** @type {import('@sluice/core').Decision} */ decision) => decision.reason === reason
  return { call, allowed: isExpected, sync: true, floor: true, hotKeyOnly: true }
}

const allowed = (/** @type {import('@sluice/core').Decision} */ decision) => decision.allowed

/** A log holds at most 100,000 entries: on the hot key those of 2 ms, which come and go. @param {Limit} limit */
function logPolicy(limit) {
  return limit === GENEROUS
    ? slidingLog({ limit: 100_000, window: '2ms' })
    : slidingLog({ limit: limit.limit, window: limit.windowMs })
}

/** @param {Limit} limit */
function policy({ limit, windowMs }) {
  return gcra({ limit, window: windowMs })
}
