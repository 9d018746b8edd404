import type { Decision } from '@sluice/core'
import { sharedInProcess } from '@sluice/core/internal'

/**
 * The decision that allowed the call of a response, for example to settle its cost: of several decisions the last one, or the
 * last one by the limiter with the given name. Undefined for a response that did not come through `limitFetch` or `limitAxios`.
 */
export function decisionOf(response: object, limiter?: string): Decision | undefined {
  const known = decisionsByResponse.get(response) ?? []
  return known.findLast((decision) => limiter === undefined || decision.limiter === limiter)
}

/**
 * Keeps the decisions that allowed the call of a response, for `decisionOf`. `own` are those of this client. `inner` is the
 * response from which this one was made, or the response itself: if the call went through a further limited client, that client's
 * decisions were kept with `inner`, and come first.
 */
export function remember(response: object, own: readonly Decision[], inner: object = response): void {
  decisionsByResponse.set(response, [...(decisionsByResponse.get(inner) ?? []), ...own])
}

/** Any copy of this package knows the decisions of calls that another one sent. */
const decisionsByResponse = sharedInProcess(
  'outbound.decisions',
  () => new WeakMap<object, readonly Decision[]>(),
)
