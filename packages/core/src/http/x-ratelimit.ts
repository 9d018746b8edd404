import { type Counted, tightest } from './counted.js'
import type { SetHeader } from './platform.js'
import { wholeSeconds } from './seconds.js'

/**
 * The headers that most clients read, though no standard names them. They have room for one limiter: the tightest.
 * X-RateLimit-Reset says when its allowance is full again, in seconds: as wall time or from now.
 */
export function writeXRateLimit(all: readonly Counted[], resetAs: 'epoch' | 'delta', set: SetHeader): void {
  const decision = tightest(all)
  const origin = resetAs === 'epoch' ? Date.now() : 0
  set('X-RateLimit-Limit', String(decision.limit))
  set('X-RateLimit-Remaining', String(decision.remaining))
  set('X-RateLimit-Reset', String(wholeSeconds(origin + decision.resetAfterMs)))
}
