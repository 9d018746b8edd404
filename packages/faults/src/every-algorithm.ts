import { mainShapes, sampleOf, type Shape } from '@sluice/testing/internal'
import type { PolicySpec } from './policy-spec.js'

/** Every algorithm in every variant with a limit of `limit`, of which nothing comes back while a row runs. */
export function everyAlgorithm(limit: number): readonly (readonly [title: string, spec: PolicySpec])[] {
  return mainShapes().map((shape) => [shape.title.replaceAll('-', ' '), lasting(shape, limit)])
}

/**
 * A policy of which nothing comes back while a row runs: under a window of a day, and of a year where windows are aligned to the
 * epoch and one might end in the middle.
 */
export function lasting(shape: Shape, limit: number): PolicySpec {
  return specOf(shape, { limit, window: isAligned(shape) ? '365d' : '1d' })
}

/** A policy of this shape. */
export function specOf({ algorithm, variant, model }: Shape, options: PolicySpec[1]): PolicySpec {
  const { window, ...others } = options
  const own = model.onlyWindow ? {} : { window }
  return [algorithm as PolicySpec[0], { ...variant, ...others, ...own } as PolicySpec[1]]
}

/** Whether its windows are of the calendar, which are never short and have no leases. */
export function isCalendar([, options]: PolicySpec): boolean {
  return 'every' in options
}

/** Whether more than the capacity may pass at once, where one window ends and another begins. */
export function isAligned(shape: Shape): boolean {
  const policy = sampleOf(shape)
  return policy.algorithm.bounds.most(policy, 2) > policy.capacity
}
