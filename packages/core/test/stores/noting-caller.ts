import type { Caller } from '../../src/stores/store.js'

/** A caller who may give up, and who notes whether the store keeps its call back. */
export class NotingCaller implements Caller {
  unsent = false

  constructor(public gone = false) {}

  queued(isQueued: boolean): void {
    this.unsent = isQueued
  }
}
