import type { Permits, PermitStep, TicketState, TicketStates } from '../../src/stores/permits.js'
import { guard } from '../../src/leases/leased-store.js'
import { type Keyspace, type Permit, type Store, StoreError, type StoreErrorCode } from '../../src/index.js'

/** A store elsewhere whose permits answer what a test says: 'held' for every ticket until then. */
export class PermitsElsewhere implements Store {
  /** The calls that arrived, in order: a step with its tickets, as in 'poll 1,2'. */
  readonly calls: string[] = []
  readonly guard = guard
  answer: PermitsAnswer = (_, tickets) => tickets.map(() => 'held')
  /** Tells the semaphore that a waiting ticket was granted a permit. */
  announce: (ticket: number) => void = () => {}

  answerAll(state: TicketState): void {
    this.answer = (_, tickets) => tickets.map(() => state)
  }

  /** From now on every call fails unsent. */
  fail(code: StoreErrorCode = 'STORE_UNAVAILABLE'): void {
    this.answer = () => Promise.reject(new StoreError(code, 'as the test says', { sent: false }))
  }

  permits(): Permits {
    return {
      ask: async (step, _, tickets) => {
        this.calls.push(`${step} ${tickets.join()}`)
        return this.answer(step, tickets)
      },
      listen: (granted) => (this.announce = granted),
      close: () => {},
    }
  }

  keyspace(): Keyspace {
    throw new Error('only permits are kept here')
  }

  now(): number {
    return performance.now() * 1000
  }

  close(): void {}
}

export type PermitsAnswer = (step: PermitStep, tickets: readonly number[]) => TicketStates

/** How a promise has settled so far. */
export function outcome(promise: Promise<Permit>): { readonly permit?: Permit; readonly error?: unknown } {
  const seen: { permit?: Permit; error?: unknown } = {}
  promise.then(
    (permit) => (seen.permit = permit),
    (error: unknown) => (seen.error = error),
  )
  return seen
}
