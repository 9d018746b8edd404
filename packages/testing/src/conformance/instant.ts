import type { Rule } from './rule.js'

/** An instant that never comes. */
export const NEVER = 2n ** 62n

/**
 * The earliest instant, in microseconds and no earlier than `from`, at which `cost` units fit under a policy; NEVER for a cost
 * above its capacity. `standing` is the key's state as the policy's model keeps it. The instant is searched for with the model's
 * own `room`, so that no second formula for waits can be wrong in the same way as the product's.
 */
export function earliestInstant(standing: unknown, rule: Rule, from: bigint, cost: bigint): bigint {
  if (cost > rule.capacity) return NEVER
  return first(from, (instant) => rule.model.room(standing, rule, instant) >= cost)
}

/** The instant from `from` on at which the whole capacity fits again; `from` itself if it fits already. */
export function resetInstant(standing: unknown, rule: Rule, from: bigint): bigint {
  return earliestInstant(standing, rule, from, rule.capacity)
}

/** The latest of some instants. */
export function latest(...instants: readonly bigint[]): bigint {
  return instants.reduce((a, b) => (b > a ? b : a))
}

/**
 * The first instant from `from` on at which a condition holds that stays true once it is true. Searched for by steps, each eight
 * times as long as the last, until one ends where the condition holds; then that step is halved again and again, with `low` where
 * the condition does not hold and `high` where it does.
 * @throws {Error} past NEVER, where a search would go on without end.
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
