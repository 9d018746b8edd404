import { createLimiter, type Keyspace, type Limiter, memoryStore, type Store } from '@sluice/core'
import { guard } from '@sluice/core/store'
import type { ReadColumn } from './scenario.js'

/** A multiple of a day, so that windows begin at the start. */
export const START_MS = Date.UTC(2026, 0, 1)

type Decide = Keyspace['decide']
type DecideAtOnce = (...call: Parameters<Decide>) => Exclude<ReturnType<Decide>, Promise<unknown>>

/** The limiters of a column on a clock of its own. They are the library's, and so is each decision. */
export class Limits {
  /** Milliseconds from the start. */
  now = 0
  /** The turn of the latest call that had to wait, to the microsecond. */
  turn = 0
  readonly #memory = memoryStore({ clock: () => Math.round((START_MS + this.now) * 1000) })
  readonly #limiters: readonly Limiter[]
  readonly #names: string[] = []
  #calls = 0
  #answer!: DecideAtOnce

  constructor(readonly column: ReadColumn) {
    const { policies, maxWait, penalty, leases } = column
    const keyspace = this.#memory.keyspace.bind(this.#memory)
    const store: Store = Object.assign(this.#memory, {
      local: leases === undefined,
      forgets: false, // with the page, as it is to: it warns of none
      guard,
      keyspace: (...opening: Parameters<Store['keyspace']>) => {
        const state = keyspace(...opening)
        this.#answer = state.decide.bind(state) as DecideAtOnce
        const remote: Decide = async (...call) => this.#answer(...call)
        const decide = leases ? remote : maxWait === undefined ? this.#answer : this.#book
        return Object.assign(state, { decide })
      },
    })
    const shared = leases && { leases: { ttl: leases.ttl, size: leases.size }, deadline: '1m' }
    const options = { name: 'api', policies, store, ...(penalty && { penalty }), ...shared }
    this.#limiters = Array.from({ length: leases?.processes ?? 1 }, () => createLimiter(options))
  }

  /** A decision about the next call of a key: of `consume`, or of `acquire` as it is when it books. */
  decide(key: number, cost: number) {
    const limiter = this.#limiters[this.#calls++ % this.#limiters.length]!
    const name = (this.#names[key] ??= `key-${key}`) // as hashing a new one takes longer
    return limiter.decide(name, { cost })
  }

  /** Units left of a key, by policy. */
  remaining(key: number): readonly number[] {
    const { remaining, parts } = this.#answer('peek', `key-${key}`, 0, 0)
    return parts ? this.column.policies.map((_, i) => parts[3 * i + 1]!) : [remaining]
  }

  close(): void {
    for (const limiter of this.#limiters) void limiter.close()
    void this.#memory.close()
  }

  /** Each call books its turn, as `acquire` does, and the answer does not wait for it. */
  readonly #book: Decide = (ask, key, cost) => {
    const booked = this.#answer(ask === 'consume' ? 'book' : ask, key, cost, this.column.maxWait! * 1000)
    if (booked.reason !== undefined) return booked
    const turnAt = Math.max(booked.now, booked.at)
    this.turn = turnAt / 1000 - START_MS
    return { waited: { turnAt, waitMs: Math.ceil((turnAt - booked.now) / 1000), lateMs: 0 }, ...booked }
  }
}
