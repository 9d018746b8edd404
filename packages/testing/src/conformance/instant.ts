import type { Rule } from './rule.js'

/** An instant that never comes. */
export const NEVER = 2n ** 62n

/** The earliest instant from `from` on at which `cost` units fit, NEVER where they never do. */
export function earliestInstant(standing: unknown, rule: Rule, from: bigint, cost: bigint): bigint {
  if (cost > rule.capacity) return NEVER
  return first(from, (instant) => rule.model.room(standing, rule, instant) >= cost)
}

/** The instant from `from` on at which all units fit again; `from` when they do already. */
export function resetInstant(standing: unknown, rule: Rule, from: bigint): bigint {
  return earliestInstant(standing, rule, from, rule.capacity)
}

/** The latest of some instants. */
export function latest(...instants: readonly bigint[]): bigint {
  return instants.reduce((a, b) => (b > a ? b : a))
}

/**
 * The first instant from `from` on at which a condition holds. The condition stays true once it is true, so the instant is found by
 * steps that grow until it holds, and by halving the last of them.
 */
function first(from: bigint, holds: (instant: bigint) => boolean): bigint {
  if (holds(from)) return from
  let low = from
  let step = 1n
  while (!holds(from + step)) {
    low = from + step
    step *= 8n
    if (low > NEVER) throw new Error('the model has a condition that never comes true')
  }
  let high = from + step
  while (high - low > 1n) {
    const middle = (low + high) / 2n
    if (holds(middle)) high = middle
    else low = middle
  }
  return high
}
