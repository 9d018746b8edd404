import { type Limiter, PolicyError, StoreError } from '@sluice/core'
import { counting, type DecisionCounter } from '@sluice/core/internal'
import { isOverruled, resultName, resultOf } from './sources/policy-counts.js'

/** The part of OpenTelemetry's `trace` that is used: the API's object, or a tracer that knows the active span. */
export interface TraceLike {
  getActiveSpan(): { setAttributes(attributes: Record<string, string | number>): unknown } | undefined
}

/**
 * Writes each decision of a limiter to the span that is active when it is made: result, reason, policy, what remains and
 * the wait for the store. It makes no spans, and writes no key. Returns a function that ends it.
 * @throws {PolicyError} INVALID_OPTION for a limiter or `trace` that is none; StoreError CLOSED for a limiter that is closed.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * import { annotateSpans } from '@sluice/metrics'
 * import { trace } from '@opentelemetry/api'
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m' })] })
 * annotateSpans(limiter, { trace })
 */
export function annotateSpans(limiter: Limiter, { trace }: { readonly trace: TraceLike }): () => void {
  if (typeof limiter?.consume !== 'function' || typeof limiter.on !== 'function') {
    throw new PolicyError('INVALID_OPTION', 'annotateSpans takes a limiter that createLimiter() made')
  }
  if (typeof trace?.getActiveSpan !== 'function') {
    throw new PolicyError('INVALID_OPTION', 'trace must be that of @opentelemetry/api')
  }
  if (limiter.isClosed) throw new StoreError('CLOSED', `the limiter '${limiter.name}' is closed`)
  /**
   * Writes a decision to the active span, if there is one. A call on several keys makes a decision for each; `together` is the
   * number of keys. If one key denied the whole call, the decisions of keys that allowed it are left out (`isOverruled`), as the
   * span would then say that the call was allowed.
   */
  const annotate: DecisionCounter = (decision, _operation, decidedBy, storeMs, together) => {
    if (isOverruled(decision, decidedBy, together)) return
    trace.getActiveSpan()?.setAttributes({
      'sluice.limiter': decision.limiter,
      'sluice.policy': decision.policy,
      'sluice.result': resultName(resultOf(decision)),
      'sluice.reason': decision.reason ?? 'none',
      'sluice.decided_by': decidedBy,
      'sluice.remaining': decision.remaining,
      'sluice.store_ms': storeMs,
    })
  }
  return limiter.on('decision', counting(annotate))
}
