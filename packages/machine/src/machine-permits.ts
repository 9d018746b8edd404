import type { MaybePromise, Permits, TicketState } from '@sluice/core/store'
import type { Membership } from './membership.js'
import type { PermitOperation } from './protocol.js'

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

  async take(key: string, ticket: number, limit: number, waits: boolean): Promise<boolean> {
    const [state] = await this.#ask('take', key, [ticket], limit, waits)
    return state === 'held'
  }

  poll(key: string, tickets: readonly number[], limit: number): MaybePromise<readonly TicketState[]> {
    return this.#ask('poll', key, tickets, limit)
  }

  renew(key: string, tickets: readonly number[], limit: number): MaybePromise<readonly TicketState[]> {
    return this.#ask('renew', key, tickets, limit)
  }

  async release(key: string, tickets: readonly number[], limit: number): Promise<void> {
    await this.#ask('leave', key, tickets, limit)
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

  #ask(
    operation: PermitOperation,
    key: string,
    tickets: readonly number[],
    limit: number,
    waits = false,
  ): MaybePromise<readonly TicketState[]> {
    const { number: semaphore, name, leaseMs, membership } = this.#options
    const call = { operation, semaphore, name, key, tickets, limit, lease: leaseMs * 1000, waits }
    return membership.ask((server) => server.permits(call))
  }
}
