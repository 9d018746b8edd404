import type { Decision } from '../decision.js'
import type { Limiter } from '../limiter.js'
import type { MaybePromise } from '../stores/store.js'
import type { Denied } from './guard.js'

/*
 * A GraphQL request may run one operation under thousands of aliases. The first denial of a limiter decides those that
 * follow under the same key: neither the store nor any callback is asked again.
 */

/** A limiter's denial of one request. */
export interface Refusal {
  readonly decision: Decision
  readonly cost: number
  /** How each guard of the limiter answers it. */
  readonly answers: Map<object, MaybePromise<Denied>>
}

const REFUSALS = new WeakMap<object, Map<Limiter, Map<string, Refusal>>>()

/**
 * The denial that decides a further call of `request`. A cost that never fits says nothing about lighter calls: it decides
 * those whose cost is known to be no less.
 */
export function refusalOf(request: object, limiter: Limiter, key: string, cost = 0): Refusal | undefined {
  const refusal = REFUSALS.get(request)?.get(limiter)?.get(key)
  return refusal && (refusal.decision.reason !== 'cost' || cost >= refusal.cost) ? refusal : undefined
}

/** Keeps a denial for the rest of `request`. */
export function remember(request: object, limiter: Limiter, key: string, refusal: Refusal): Refusal {
  let byLimiter = REFUSALS.get(request)
  if (!byLimiter) REFUSALS.set(request, (byLimiter = new Map()))
  let byKey = byLimiter.get(limiter)
  if (!byKey) byLimiter.set(limiter, (byKey = new Map()))
  byKey.set(key, refusal)
  return refusal
}
