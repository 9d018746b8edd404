import { type Options, type Rule, ruleOf, type Shape } from '@sluice/testing/internal'

/**
 * The policy that the store has to decide by where units are served up to `ttl` milliseconds after they were booked; undefined where
 * nothing is left to lease.
 */
export function bookedBy({ model }: Shape, options: Options, ttl: number): Rule | undefined {
  const booked = model.leased?.(options, ttl)
  return booked && ruleOf(model, booked)
}
