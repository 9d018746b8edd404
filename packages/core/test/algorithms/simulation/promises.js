/*
 * What a limit promises, kept over the whole history and counted from what was really used: a call that is under way
 * counts with its estimate, one that has ended with its real cost, each at the instant at which it was charged.
 */

/** @typedef {{ readonly at: number, cost: number }} Charge units at an instant in microseconds */
/**
 * @typedef {object} Exact
 * @property {(now: number, cost: number) => boolean} fits
 * @property {(charge: Charge) => void} add a charge whose cost may be lowered later
 */

/**
 * At most `limit` units in every span of a window.
 * @param {number} limit
 * @param {number} window
 * @returns {Exact}
 */
export function exactLog(limit, window) {
  /** @type {Charge[]} */
  const charges = []
  let oldest = 0
  return {
    fits(now, cost) {
      while ((charges[oldest]?.at ?? Infinity) <= now - window) oldest++
      let used = cost
      for (let i = oldest; i < charges.length; i++) used += /** @type {Charge} */ (charges[i]).cost
      return used <= limit
    },
    add: (charge) => void charges.push(charge),
  }
}

/**
 * At most `limit` units at once, and as many more in each window.
 * @param {number} limit
 * @param {number} window
 * @param {number} longest microseconds after which no cost changes any more
 * @returns {Exact}
 */
export function exactWorkload(limit, window, longest) {
  /** @type {Charge[]} */
  const charges = []
  let settled = 0
  /** What the charges before `settled` left behind. */
  let left = { work: 0, at: 0 }
  /** @param {typeof left} before @param {Charge} charge */
  const after = (before, { at, cost }) => ({ work: worked(before, at) + cost, at })
  /** @param {typeof left} before @param {number} at */
  const worked = ({ work, at: since }, at) => Math.max(0, work - ((at - since) * limit) / window)
  return {
    fits(now, cost) {
      while ((charges[settled]?.at ?? Infinity) < now - longest) {
        left = after(left, /** @type {Charge} */ (charges[settled++]))
      }
      let owed = left
      for (let i = settled; i < charges.length; i++) owed = after(owed, /** @type {Charge} */ (charges[i]))
      return worked(owed, now) + cost <= limit
    },
    add: (charge) => void charges.push(charge),
  }
}

/**
 * The most by which any span of a window holds more than `limit`.
 * @param {readonly Charge[]} charges oldest first
 * @param {number} limit
 * @param {number} window
 */
export function excessOfLog(charges, limit, window) {
  let [used, oldest, most] = [0, 0, 0]
  for (const { at, cost } of charges) {
    used += cost
    for (let first = charges[oldest]; first && first.at <= at - window; first = charges[++oldest]) {
      used -= first.cost
    }
    most = Math.max(most, used - limit)
  }
  return most
}

/**
 * The most by which any span holds more than `limit` and what the rate brings in it.
 * @param {readonly Charge[]} charges oldest first
 * @param {number} limit
 * @param {number} window
 */
export function excessOfWorkload(charges, limit, window) {
  let [work, since, most] = [0, 0, 0]
  for (const { at, cost } of charges) {
    work = Math.max(0, work - ((at - since) * limit) / window) + cost
    since = at
    most = Math.max(most, work - limit)
  }
  return most < 1e-3 ? 0 : most // the sums here are rounded, those of the limiter are not
}
