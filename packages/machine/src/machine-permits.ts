import type { Permits, PermitStep, TicketStates } from '@sluice/core/store'
import type { Membership } from './membership.js'

export interface MachinePermitsOptions {
  /** Of this semaphore in its process. */
  readonly number: number
  readonly name: string
  readonly leaseMs: number
  readonly membership: Membership
  readonly onClose: () => void
}

/** The permits of one semaphore of this process, with the server of the machine. */
export class MachinePermits implements Permits {
  readonly #options: MachinePermitsOptions
  #granted: ((ticket: number) => void) | undefined

  constructor(options: MachinePermitsOptions) {
    this.#options = options
  }

  ask(step: PermitStep, key: string, tickets: readonly number[], limit: number): TicketStates {
    const { number: semaphore, name, leaseMs, membership } = this.#options
    const call = { step, semaphore, name, key, tickets, limit, lease: leaseMs * 1000 }
    return membership.ask((server) => server.permits(call))
  }

  listen(granted: (ticket: number) => void): void {
    this.#granted = granted
  }

  /** A waiting ticket was granted a permit. */
  granted(ticket: number): void {
    this.#granted?.(ticket)
  }

  close(): void {
    this.#granted = undefined
    this.#options.onClose()
  }
}
