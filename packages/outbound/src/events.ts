import type { ExceededReason } from './exceeded.js'
import type { Decision } from '@sluice/core'

/** What happens to the calls of a client, for logs and metrics. `limiter` is the name of the client's limiter. */
export type OutboundEvent =
  /** A call that had to wait goes out. */
  | {
      readonly type: 'waited'
      readonly limiter: string
      readonly key: string
      readonly priority: number
      readonly waitMs: number
    }
  /** A call is refused and does not go out. */
  | {
      readonly type: 'denied'
      readonly limiter: string
      readonly key: string
      readonly priority: number
      readonly reason: ExceededReason
      readonly decision: Decision | undefined
    }
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

/** What happens in a queue made by `createQueue`. `attempt` counts from 1. */
export type QueueEvent =
  | OutboundEvent
  /** A call begins to wait, for its first or a further attempt. */
  | { readonly type: 'queued'; readonly key: string; readonly priority: number; readonly attempt: number }
  /** Its function is called. */
  | { readonly type: 'started'; readonly key: string; readonly priority: number; readonly attempt: number }
  /** Its function succeeded. */
  | (AttemptEnd & { readonly type: 'done' })
  /** Its function failed, and is called again. */
  | (AttemptEnd & { readonly type: 'retried' })
  /** Its function failed, and is not called again. */
  | (AttemptEnd & { readonly type: 'failed'; readonly error: unknown })
  /** `pause()` and `resume()` were called. */
  | { readonly type: 'paused' | 'continued' }
  /** No call waits any more. */
  | { readonly type: 'empty' }
  /** No call waits or is under way any more. */
  | { readonly type: 'idle' }

/** The end of one attempt. `ms` is how long the function took. */
export interface AttemptEnd {
  readonly key: string
  readonly priority: number
  readonly attempt: number
  readonly ms: number
}
