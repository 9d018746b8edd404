/** The events of a semaphore in this process, by name. */
export interface SemaphoreEvents {
  /** A call got a permit. */
  granted: PermitEvent & { readonly waitMs: number }
  /** A call that had to wait got a permit. Emitted before 'granted'. */
  waited: PermitEvent & { readonly waitMs: number }
  /** A call got no permit within its `maxWait`. */
  denied: PermitEvent & { readonly waitMs: number }
  /** A permit was released after `heldMs`. */
  released: PermitEvent & { readonly heldMs: number }
  /** The store lost a permit while it was held. */
  lost: PermitEvent & { readonly heldMs: number }
}

/** What events of permits have in common. Times are whole milliseconds, rounded up. */
export interface PermitEvent {
  /** Name of the semaphore. */
  readonly semaphore: string
  readonly key: string
}
