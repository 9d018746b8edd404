/** The work of a process of one machine together with the others. */
export type MachineJob =
  /** Opens a store, and calls for one key as fast as it can. */
  | { readonly kind: 'race'; readonly folder: string; readonly name: string; readonly calls: number }
  /** Opens one store after the other, each at its instant (of `Date.now()`), and makes one call in each. */
  | {
      readonly kind: 'binds'
      readonly folder: string
      readonly names: readonly string[]
      readonly at: readonly number[]
    }
  /** Opens a store and goes on calling for one key. */
  | { readonly kind: 'load'; readonly folder: string; readonly name: string }
  /** Tells what the load has seen so far. */
  | { readonly kind: 'count' }
  /** Ends the load. */
  | { readonly kind: 'end' }

export interface MachineResult {
  readonly serves: boolean
  readonly admitted: number
  /** Of each store of 'binds', what its call left. */
  readonly remaining: readonly number[]
  /** When calls were made that the store did not decide, as `Date.now()` tells. */
  readonly degradedAt: readonly number[]
}

/** Nothing of it comes back while a row runs. */
export const LIMIT = 1000
