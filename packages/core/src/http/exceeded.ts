import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import { inCommon } from '../values/contract.js'

/** Calls `onExceeded` if a denial is the one with which its key went over its limit. An error in it does not affect the request. */
export function exceededReporter<Req, Res>(
  limiter: Limiter,
  onExceeded: (req: Req, res: Res, decision: Decision) => unknown,
): (req: Req, res: Res, key: string, decision: Decision) => void {
  return (req, res, key, decision) => {
    if (decision.reason === 'limit' && wentOver(limiter, key, decision)) void report(req, res, decision)
  }

  async function report(req: Req, res: Res, decision: Decision): Promise<void> {
    try {
      await onExceeded(req, res, decision)
    } catch (error) {
      limiter.warn('EXCEEDED_FAILED', `onExceeded failed: ${String(error)}`)
    }
  }
}

/** Keys that are remembered for each limiter; beyond them the ones that were denied longest ago are forgotten. */
const MOST_KEYS = 10_000

/** By limiter and key, until when the key counts as over its limit, in milliseconds of the monotonic clock. */
const overUntil = inCommon('exceeded', () => new WeakMap<Limiter, Map<string, number>>())

/**
 * Records that `decision` denied `key`. Returns whether the key went over its limit just now: it was not denied before, or
 * its allowance could have been full again since. A key that is denied all the time thus goes over once a window at most.
 */
function wentOver(limiter: Limiter, key: string, decision: Decision): boolean {
  let keys = overUntil.get(limiter)
  if (!keys) overUntil.set(limiter, (keys = new Map()))
  const now = performance.now()
  const until = keys.get(key)
  // Deleted first, so that it becomes the newest of the map.
  keys.delete(key)
  if (keys.size >= MOST_KEYS) keys.delete(keys.keys().next().value!)
  keys.set(key, now + spanOf(decision))
  return until === undefined || now >= until
}

/** A limit of 0 is never full again, and counts by its window. */
function spanOf(decision: Decision): number {
  if (decision.retryAfterMs < Infinity) return decision.resetAfterMs
  return Math.max(...decision.policies.map(({ windowMs }) => windowMs))
}
