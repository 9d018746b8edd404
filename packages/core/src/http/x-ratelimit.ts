import { type Counted, tightest } from './counted.js'
import type { SetHeader } from './platform.js'
import { wholeSeconds } from './seconds.js'

/**
 * The headers that most clients read, though no standard names them. They have room for one limiter: the tightest.
 * `reset` is when its allowance is full again, as wall time or from now, in seconds.
 */
export function writeXRateLimit(all: readonly Counted[], reset: 'epoch' | 'delta', set: SetHeader): void {
  const decision = tightest(all)
  const origin = reset === 'epoch' ? Date.now() : 0
  set('X-RateLimit-Limit', String(decision.limit))
  set('X-RateLimit-Remaining', String(decision.remaining))
  set('X-RateLimit-Reset', String(wholeSeconds(origin + decision.resetAfterMs)))
}
