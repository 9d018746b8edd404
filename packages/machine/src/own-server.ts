import type { PermitCall, PermitHolder } from '@sluice/core/internal'
import type { Answer, Ask, Correction, Keyspace, Notice, TicketState } from '@sluice/core/store'
import type { Host } from './host.js'
import type { MachineBooking, MachineServer, ServerListener } from './machine-server.js'
import type { PolicyListing } from './policy-listing.js'

/** The server where this process is it: calls are carried out at once. */
export class OwnServer implements MachineServer, PermitHolder {
  readonly id: number
  readonly #host: Host
  readonly #listener: ServerListener
  readonly #end: () => void
  readonly #keyspaces = new WeakMap<PolicyListing, Keyspace>()

  /** `end` ends the serving of other processes. */
  constructor(host: Host, listener: ServerListener, end: () => void) {
    this.id = host.newHolder()
    this.#host = host
    this.#listener = listener
    this.#end = end
  }

  get life(): number {
    return this.#host.life
  }

  get latest(): number {
    return this.#host.now()
  }

  decide(list: PolicyListing, ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const answer = this.#host.decide(this, this.#open(list), ask, key, cost, maxWait)
    if (!answer.booking) return answer
    const { at, decidedAt } = answer.booking
    const number = this.#host.keep(answer)
    const booking: MachineBooking = { key, at, cost, decidedAt, life: this.life, number, isCancelled: false }
    return { ...answer, booking }
  }

  confirm(list: PolicyListing, { number }: MachineBooking): 'stands' | 'lost' | 'held' {
    return this.#host.confirm(this.#open(list), number)
  }

  cancel(list: PolicyListing, booking: MachineBooking): boolean {
    return this.#host.cancel(this, this.#open(list), booking.number, booking.key, booking)
  }

  correct(list: PolicyListing, change: Correction): number {
    return this.#host.correct(this, this.#open(list), change)
  }

  permits(call: PermitCall): readonly TicketState[] {
    return this.#host.permits(this, call)
  }

  notice(name: string, notice: Notice): void {
    this.#listener.notice(name, notice)
  }

  /** Later, as another process would hear of it: the call that gave the permit back has not returned yet. */
  granted(semaphore: number, ticket: number): void {
    queueMicrotask(() => this.#listener.granted(semaphore, ticket))
  }

  close(): void {
    this.#end()
  }

  #open(list: PolicyListing): Keyspace {
    let keyspace = this.#keyspaces.get(list)
    if (!keyspace) this.#keyspaces.set(list, (keyspace = this.#host.open(list, this)))
    return keyspace
  }
}
