import { createLimiter, type Decision, type Keyspace, memoryStore, type Store } from '@sluice/core'
import { guard } from '@sluice/core/store'
import type { ReadColumn } from './scenario.js'

/** A multiple of a day, so that windows begin at the start. */
export const START_MS = Date.UTC(2026, 0, 1)

/** The limiters of a column on a clock of its own. They are the library's, and so is each decision. */
export interface Limits {
  /** Milliseconds from the start. */
  now: number
  /** The turn of the latest call that had to wait, to the microsecond. */
  turn: number
  /** A decision about the next call of a key: of `consume`, or of `acquire` as it is when it books. */
  decide(key: number, cost: number): Decision | Promise<Decision>
  /** Units left of a key, by policy. */
  remaining(key: number): readonly number[]
  close(): void
}

type Answer = Exclude<ReturnType<Keyspace['decide']>, Promise<unknown>>

export function openLimits({ policies, maxWait, penalty, leases }: ReadColumn): Limits {
  const memory = memoryStore({ clock: () => Math.round((START_MS + limits.now) * 1000) })
  let answer!: (...call: Parameters<Keyspace['decide']>) => Answer
  /** Each call books its turn, as `acquire` does, and the answer does not wait for it. */
  const book: Keyspace['decide'] = (ask, key, cost) => {
    const booked = answer(ask === 'consume' ? 'book' : ask, key, cost, maxWait! * 1000)
    if (booked.reason !== undefined) return booked
    const turnAt = Math.max(booked.now, booked.at)
    limits.turn = turnAt / 1000 - START_MS
    return { ...booked, turnAt, waitMs: Math.ceil((turnAt - booked.now) / 1000) }
  }
  const store: Store = {
    local: leases === undefined,
    guard,
    now: () => memory.now(),
    close: () => memory.close(),
    keyspace(...opening) {
      const state = memory.keyspace(...opening)
      answer = state.decide.bind(state) as typeof answer
      const remote: Keyspace['decide'] = async (...call) => answer(...call)
      return Object.assign(state, { decide: leases ? remote : maxWait === undefined ? answer : book })
    },
  }
  const shared = leases && { leases: { ttl: leases.ttl, size: leases.size }, deadline: '1m' }
  const options = { name: 'api', policies, store, ...(penalty && { penalty }), ...shared }
  const limiters = Array.from({ length: leases?.processes ?? 1 }, () => createLimiter(options))
  let calls = 0
  const names: string[] = []
  const nameOf = (key: number): string => (names[key] ??= `key-${key}`)
  const limits: Limits = {
    now: 0,
    turn: 0,
    decide: (key, cost) => limiters[calls++ % limiters.length]!.decide(nameOf(key), { cost }),
    remaining(key) {
      const { remaining, parts } = answer('peek', nameOf(key), 0, 0)
      return parts ? policies.map((_, i) => parts[3 * i + 1]!) : [remaining]
    },
    close() {
      for (const limiter of limiters) void limiter.close()
      void memory.close()
    },
  }
  return limits
}
