import type { ExceededReason } from './exceeded.js'
import type { Decision } from '@sluice/core'

/** What happens to the calls of a client, for logs and metrics. Fields of one name mean the same in all events of Sluice. */
export type OutboundEvent =
  /** A call that had to wait goes out. */
  | (CallEvent & { readonly type: 'waited'; readonly waitMs: number; readonly decision: Decision })
  /** A call is refused and does not go out. */
  | (CallEvent & {
      readonly type: 'denied'
      readonly reason: ExceededReason
      /** Undefined where the limiter was not asked. */
      readonly decision: Decision | undefined
    })
  /** The other side asked for a pause. The key is held for the whole fleet. `status` is that of the reply, if there was one. */
  | {
      readonly type: 'held'
      readonly limiter: string
      readonly key: string
      readonly status: number | undefined
      readonly holdMs: number
    }
  /** The first call of this process after a pause goes out. */
  | { readonly type: 'resumed'; readonly limiter: string; readonly key: string }

/** What happens in a queue made by `createQueue`. */
export type QueueEvent =
  | OutboundEvent
  /** A call begins to wait, for its first or a further attempt. */
  | (AttemptEvent & { readonly type: 'queued' })
  /** Its function is called. */
  | (AttemptEvent & { readonly type: 'started' })
  /** Its function succeeded. */
  | (AttemptEnd & { readonly type: 'done' })
  /** Its function failed, and is called again. */
  | (AttemptEnd & { readonly type: 'retried' })
  /** Its function failed, and is not called again. */
  | (AttemptEnd & { readonly type: 'failed'; readonly error: unknown })
  /** `pause()` and `resume()` were called. */
  | { readonly type: 'paused' | 'continued'; readonly limiter: string }
  /** No call waits any more. */
  | { readonly type: 'empty'; readonly limiter: string }
  /** No call waits or is under way any more. */
  | { readonly type: 'idle'; readonly limiter: string }

/** What events of one call have in common. `limiter` is the name of the client's limiter, `cost` the units of the call. */
export interface CallEvent {
  readonly limiter: string
  readonly key: string
  readonly cost: number
  readonly priority: number
}

/** One attempt of a call. `attempt` counts from 1. */
export interface AttemptEvent extends CallEvent {
  readonly attempt: number
}

/** The end of one attempt. `runMs` is how long the function took. */
export interface AttemptEnd extends AttemptEvent {
  readonly runMs: number
}
