import type { Decision } from '@sluice/core'

/** Of all copies of this package in the process: which of them sent a call makes no difference to who asks. */
const DECISIONS = Symbol.for('sluice.outbound.decisions')
const shared = globalThis as { [DECISIONS]?: WeakMap<object, readonly Decision[]> }
const decisions = (shared[DECISIONS] ??= new WeakMap())

/**
 * The decision that let the call of a response out, for example to settle its cost: the latest, or that of the limiter
 * of the given name. Undefined for a response that did not come through `limitFetch` or `limitAxios`.
 */
export function decisionOf(response: object, limiter?: string): Decision | undefined {
  const known = decisions.get(response) ?? []
  return known.findLast((decision) => limiter === undefined || decision.limiter === limiter)
}

/** `inner` is what the response was made from, where it is another object. */
export function remember(response: object, decision: Decision, inner: object = response): void {
  decisions.set(response, [...(decisions.get(inner) ?? []), decision])
}
