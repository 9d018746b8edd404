import type { MaybePromise } from '../store.js'

/** The state of a key after a change. */
export interface NewState {
  /** The state from now on: the very bytes that were given if nothing was written, undefined to delete the key. */
  readonly state: Uint8Array | undefined
  /** The instant after which the state may be dropped, in microseconds on the store's clock. */
  readonly expiresAt: number
}

/** The outcome of an operation on the state of a key. */
export interface StateChange<T> extends NewState {
  /** The result of the operation, which `Update` hands on. */
  readonly result: T
}

/**
 * Changes the state of one key in one atomic step: reads the bytes that are kept under `id`, calls `change` with them and the
 * instant, and keeps what it returns. `id` is made of the limiter's name, the shapes of the policies, and the key.
 * - No other process may update this id in between: lock the id, or compare before writing and begin again; `change` may be
 *   called repeatedly. From this process one update of an id is under way at a time.
 * - `now` is in whole microseconds on the clock that all processes with this state share. If it stands behind the latest
 *   write by less than the longest window, the time of that write counts.
 * - If it fails, it rejects with StoreError. A store that sets `local` returns at once and never fails.
 */
export type Update = <T>(
  id: string,
  change: (state: Uint8Array | undefined, now: number) => StateChange<T>,
) => MaybePromise<T>

/**
 * The same for several ids at once, for a store that reads and writes many in one round trip: `change` takes the states in the
 * order of `ids`, and returns the new ones. Each id is one atomic step, or with `allOrNone` all of them are, as `consumeAll` wants.
 * Returns the ids that another process was faster to write, of which nothing was kept: calls on them are decided again in the
 * next update. At most four are under way at a time, with about 32 ids each.
 */
export type UpdateMany = (
  ids: readonly string[],
  change: (states: readonly (Uint8Array | undefined)[], now: number) => readonly NewState[],
  options: { readonly allOrNone: boolean },
) => Promise<readonly string[]>

/** How a store changes states: one id at a time, or several. */
export type Updates = Update | { readonly updateMany: UpdateMany }
