import type { Policy } from '@sluice/core'
import type { CallQueue } from './call-queue.js'
import type { OutboundEvents } from './events.js'

/** A limited client, beside what it does for its calls. */
export interface LimitedClient {
  /** Listens to one type of event. Returns a function that removes the listener. */
  on<K extends keyof OutboundEvents>(type: K, listener: (event: OutboundEvents[K]) => void): () => void
  /**
   * Sets other policies, also for the calls that wait. Consumed units still count if the new list has the same shapes
   * (algorithms and windows, in order). Each process sets its own.
   * @throws {PolicyError} INVALID_POLICIES.
   */
  setPolicies(policies: readonly Policy[]): void
}

/**
 * Returns the methods that a limited client has beside those of the client it limits: `on` adds a listener to the events of its
 * `queue`, and `setPolicies` replaces the policies under which its calls wait.
 */
export function clientOf(queue: CallQueue): LimitedClient {
  return {
    on: (type, listener) => queue.on(type, listener),
    setPolicies: (policies) => queue.setPolicies(policies),
  }
}
