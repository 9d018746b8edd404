import type { StoreWait } from './store-wait.js'

/** How a call ended that asked for a permit. */
export interface Taken {
  /** Holds a permit; undefined if none was free in time. */
  readonly ticket: number | undefined
  readonly waiter: { readonly hasWaited: boolean; readonly storeWait: StoreWait }
}

/** A call that asks for a permit. */
export interface Waiter {
  readonly key: string
  /** Undefined while the call waits. */
  outcome: 'granted' | 'left' | undefined
  /** Whether an answer to `take` is outstanding. */
  isAsking: boolean
  /** Whether the store may hold the ticket. */
  isKnown: boolean
  /** Whether the store has answered about the call. */
  wasReached: boolean
  /** Why the latest question about the call failed. */
  failure: unknown
  /** Whether the store's first answer granted no permit. */
  hasWaited: boolean
  readonly storeWait: StoreWait
  granted(): void
  /** Rejects the call with `error`; without one it is denied. */
  leave(error?: unknown): Promise<void>
}
