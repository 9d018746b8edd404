import type { Answer } from '../stores/store.js'
import type { Decision } from './decision.js'

/** One decision on traffic, as the 'decision' event reports it. */
export interface DecisionEvent {
  /** Name of the limiter. */
  readonly limiter: string
  readonly key: string
  /** `decide` is reported as 'consume'. */
  readonly operation: 'consume' | 'acquire'
  /** Units that the call asked for. */
  readonly cost: number
  readonly decision: Decision
  readonly decidedBy: DecidedBy
  /** Milliseconds that the call waited for answers of a store elsewhere; 0 if it asked none. */
  readonly storeMs: number
}

/**
 * What decided a call: a 'memory' store; a 'store' elsewhere; the 'cache' of denials; a 'lease'; 'local', the failure mode
 * that counts in this process; 'none', if nothing was counted: a limit of 0, a cost above the capacity of a store
 * elsewhere, and the failure modes 'allow' and 'deny'.
 */
export type DecidedBy = 'memory' | 'store' | 'cache' | 'lease' | 'local' | 'none'

/** `isLocal`: whether the limiter's store is in this process. */
export function decidedBy({ degraded, from }: Answer, isLocal: boolean): DecidedBy {
  if (degraded) return degraded.by ? 'local' : 'none'
  return from ?? (isLocal ? 'memory' : 'store')
}
