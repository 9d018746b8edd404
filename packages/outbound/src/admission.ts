import type { Decision } from '@sluice/core'

/** What lets an attempt of a call go out. */
export interface Admission {
  readonly decision: Decision
  /** Releases the permit of the semaphore, the first time. */
  readonly release: () => void
}
