import type { DenialCacheOptions } from '@sluice/core/internal'
import type { Clock } from '@sluice/core/store'

export interface MachineStoreOptions {
  /** Processes with stores of one name share their state. 1 to 64 characters of printable ASCII. */
  readonly name: string
  /**
   * Whether this process may keep the state.
   * - 'auto': it serves where no other process does, and takes over when that one ends.
   * - true: it only serves. While another process does, calls of this one are decided by `onStoreError`.
   * - false: it only uses what another process serves. While none does, calls are decided by `onStoreError`.
   * @default 'auto'
   */
  readonly serve?: 'auto' | boolean
  /**
   * The folder of the socket: an absolute path. It is made with mode 0700, and must belong to this user. Not used on Windows.
   * @default `sluice-<uid>` in the system's folder for temporary files
   */
  readonly folder?: string
  /**
   * Most keys held at once, as in `memoryStore`. The process that serves decides with its own.
   * @default 1_000_000
   */
  readonly maxKeys?: number
  /**
   * Most lists of shapes held at once, as in `memoryStore`. The process that serves decides with its own.
   * @default 1000
   */
  readonly maxShapes?: number
  /**
   * Caches denials in each process, so that repeated calls on an exhausted key ask no other process. A cached denial answers
   * calls of the same cost under the same limits, until the instant that the store named. Corrections made by other processes
   * (reset, refund, a shorter block) are seen within `maxAge`. `false` disables the cache.
   */
  readonly denialCache?: DenialCacheOptions | false
  /** Returns microseconds; for tests. The clock of the process that serves decides. */
  readonly clock?: Clock
}
