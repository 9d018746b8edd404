import type { ExceededReason } from './exceeded.js'
import type { Decision } from '@sluice/core'

/** What happened to calls, for logs and metrics. */
export type OutboundEvent =
  /** A call that had to wait goes out. */
  | { readonly type: 'waited'; readonly key: string; readonly priority: number; readonly waitMs: number }
  /** A call does not go out. */
  | {
      readonly type: 'denied'
      readonly key: string
      readonly priority: number
      readonly reason: ExceededReason
      readonly decision: Decision | undefined
    }
  /** The other side asked for a pause, by a reply of this status if it was one, and the key is held for the whole fleet. */
  | {
      readonly type: 'held'
      readonly key: string
      readonly status: number | undefined
      readonly holdMs: number
    }
  /** The first call of this process after a pause goes out. */
  | { readonly type: 'resumed'; readonly key: string }

/** What happens in a queue that `createQueue` made. `attempt` counts from 1, `ms` is how long the function took. */
export type QueueEvent =
  | OutboundEvent
  /** A call begins to wait, for the first time or to be repeated. */
  | { readonly type: 'queued'; readonly key: string; readonly priority: number; readonly attempt: number }
  /** A call goes out. */
  | { readonly type: 'started'; readonly key: string; readonly priority: number; readonly attempt: number }
  /** Its function has returned. */
  | (Ended & { readonly type: 'done' })
  /** Its function failed, and is called again. */
  | (Ended & { readonly type: 'retried' })
  /** Its function failed, and is not called again. */
  | (Ended & { readonly type: 'failed'; readonly error: unknown })
  /** `pause()` and `resume()` were called. */
  | { readonly type: 'paused' | 'continued' }
  /** No call waits any more. */
  | { readonly type: 'empty' }
  /** No call waits or is under way any more. */
  | { readonly type: 'idle' }

interface Ended {
  readonly key: string
  readonly priority: number
  readonly attempt: number
  readonly ms: number
}
