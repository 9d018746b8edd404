import { type Decision, SluiceError } from '@sluice/core'

/**
 * Why a call did not go out: the limiter's reason; no permit of the semaphore in time ('concurrency'); a queue that was full or too
 * slow ('queue'); a store that could not decide ('degraded'); or a queue that was paused for too long, cleared or closed.
 */
export type ExceededReason =
  | 'limit'
  | 'cost'
  | 'blocked'
  | 'held'
  | 'reservations'
  | 'concurrency'
  | 'queue'
  | 'degraded'
  | 'paused'
  | 'cleared'
  | 'closed'

/** Marks the class as core's errors are marked, so that `instanceof` holds for errors of another copy of this package. */
const KIND = Symbol.for('sluice.error')

/**
 * The call did not go out: its turn would come later than `maxWait` or never, or its queue was cleared or closed. Code
 * RATE_LIMIT_EXCEEDED.
 */
export class RateLimitExceededError extends SluiceError {
  /** @internal */
  static readonly [KIND]: string = 'RateLimitExceededError'
  readonly key: string
  readonly reason: ExceededReason
  /** The limiter's decision. Undefined where the limiter was not asked: for 'concurrency' and 'queue', for example. */
  readonly decision: Decision | undefined

  /** The error about a call that did not go out. `decision` is there if the limiter denied it. */
  constructor(key: string, reason: ExceededReason, decision?: Decision) {
    super('RATE_LIMIT_EXCEEDED', `the call to '${key}' did not go out: ${MEANINGS[reason]}`)
    this.key = key
    this.reason = reason
    this.decision = decision
  }
}

const MEANINGS: Readonly<Record<ExceededReason, string>> = {
  limit: 'the limit leaves no turn within maxWait',
  cost: 'the cost is above what ever fits',
  blocked: 'the key is blocked',
  held: 'the other side asked for a pause',
  reservations: 'as many reservations as allowed are open',
  concurrency: 'as many calls as allowed are under way',
  queue: 'too many calls wait, or it waited for maxWait',
  degraded: 'the store could not decide',
  paused: 'the queue is paused',
  cleared: 'the queue was cleared',
  closed: 'the queue is closed',
}
