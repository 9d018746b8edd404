// The least that a decision in memory can cost.

/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */

/** @type {Record<string, (limit: Limit) => Contender>} */
export const floors = {
  'await of nothing': () => ({ call: () => undefined, allowed: () => true, floor: true }),
  'a bare Map': bareMap,
  'bare GCRA': (limit) => ({ call: gcra(limit), allowed, sync: true }),
  'bare GCRA behind one await': (limit) => {
    const decide = gcra(limit)
    return { call: async (key) => decide(key), allowed }
  },
}

const allowed = (/** @type {{ allowed: boolean }} */ decision) => decision.allowed

/** @returns {Contender} */
function bareMap() {
  /** @type {Map<string, number>} */
  const calls = new Map()
  const call = (/** @type {string} */ key) => calls.set(key, (calls.get(key) ?? 0) + 1)
  return { call, allowed: () => true, sync: true, floor: true }
}

/**
 * A limiter as one would write it by hand: the time at which a key is empty again, in a Map that is never cleaned.
 * @param {Limit} limit
 */
export function gcra({ limit, windowMs }) {
  /** @type {Map<string, number>} */
  const emptyAt = new Map()
  const perCall = windowMs / limit
  return (/** @type {string} */ key) => {
    const now = Date.now()
    const known = emptyAt.get(key)
    const since = known === undefined || known < now ? now : known
    const debt = since + perCall - now
    if (debt > windowMs) {
      const retryAfterMs = Math.ceil(debt - windowMs)
      return { allowed: false, limit, remaining: 0, retryAfterMs, resetAfterMs: Math.ceil(since - now) }
    }
    emptyAt.set(key, since + perCall)
    const remaining = Math.floor((windowMs - debt) / perCall)
    return { allowed: true, limit, remaining, retryAfterMs: 0, resetAfterMs: Math.ceil(debt) }
  }
}
