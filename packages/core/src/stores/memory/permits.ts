import type { Permits, PermitStep, TicketState } from '../permits.js'
import type { PermitHolder, PermitQueues } from './permit-queues.js'

/** The permits of one semaphore of this process. */
export class MemoryPermits implements Permits, PermitHolder {
  readonly id: number
  readonly #queues: PermitQueues
  readonly #name: string
  #granted: ((ticket: number) => void) | undefined

  constructor(queues: PermitQueues, name: string, id: number) {
    this.#queues = queues
    this.#name = name
    this.id = id
  }

  ask(step: PermitStep, key: string, tickets: readonly number[], limit: number): readonly TicketState[] {
    const call = { step, semaphore: 0, name: this.#name, key, tickets, limit, lease: Infinity }
    return this.#queues.carryOut(this, call)
  }

  listen(granted: (ticket: number) => void): void {
    this.#granted = granted
  }

  granted(_semaphore: number, ticket: number): void {
    this.#granted?.(ticket)
  }

  close(): void {
    this.#granted = undefined
  }
}
