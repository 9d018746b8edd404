import type { Decision } from '@sluice/core'
import { inCommon } from '@sluice/core/internal'

/** Any copy of this package knows the decisions of calls that another one sent. */
const decisions = inCommon('outbound.decisions', () => new WeakMap<object, readonly Decision[]>())

/**
 * The decision that allowed the call of a response, for example to settle its cost: that of the limiter with the given name,
 * or the latest. Undefined for a response that did not come through `limitFetch` or `limitAxios`.
 */
export function decisionOf(response: object, limiter?: string): Decision | undefined {
  const known = decisions.get(response) ?? []
  return known.findLast((decision) => limiter === undefined || decision.limiter === limiter)
}

/** `inner` is the response from which this one was made, if it is another object. */
export function remember(response: object, own: readonly Decision[], inner: object = response): void {
  decisions.set(response, [...(decisions.get(inner) ?? []), ...own])
}
