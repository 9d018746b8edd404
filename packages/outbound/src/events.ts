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
  /** The other side asked for a pause, and the key is held for the whole fleet. */
  | { readonly type: 'held'; readonly key: string; readonly status: number; readonly holdMs: number }
  /** The first call of this process after a pause goes out. */
  | { readonly type: 'resumed'; readonly key: string }
