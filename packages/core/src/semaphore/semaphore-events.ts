import type { DecidedBy } from '../limiter/events.js'
import type { LimitChange } from './adaptive-limit.js'

/** The events of a semaphore in this process, by name. Fields of one name mean the same in all events of Sluice. */
export interface SemaphoreEvents {
  /** A call got a permit. */
  granted: PermitWait & { readonly type: 'granted' }
  /** A call that had to wait got a permit: none was free when it asked. Emitted before 'granted'. */
  waited: PermitWait & { readonly type: 'waited' }
  /** A call got no permit within its `maxWait`. */
  denied: PermitWait & { readonly type: 'denied' }
  /** A permit was released. */
  released: PermitEnd & { readonly type: 'released' }
  /** The store lost a permit while it was held. */
  lost: PermitEnd & { readonly type: 'lost' }
  /** An adaptive limit has changed. */
  adapted: PermitEvent & LimitChange & { readonly type: 'adapted' }
}

export const SEMAPHORE_EVENTS = ['granted', 'waited', 'denied', 'released', 'lost', 'adapted'] as const

/** The fields of every event of a permit. */
export interface PermitEvent {
  /** Name of the semaphore. */
  readonly semaphore: string
  readonly key: string
}

/** How a call waited for a permit. */
export interface PermitWait extends PermitEvent {
  /** Whole milliseconds from the call to its result, rounded up. */
  readonly waitMs: number
  /** Where the permits are: in a 'memory' store, or in a 'store' elsewhere. */
  readonly decidedBy: Extract<DecidedBy, 'memory' | 'store'>
  /** Milliseconds that the call waited for answers of a store elsewhere; 0 if it asked none. */
  readonly storeMs: number
}

/** How long a permit was held. */
export interface PermitEnd extends PermitEvent {
  /** Whole milliseconds, rounded up. */
  readonly heldMs: number
}
