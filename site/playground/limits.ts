import {
  createLimiter,
  type Decision,
  type Keyspace,
  type Limiter,
  memoryStore,
  type Store,
} from '@sluice/core'
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
  decide(key: string, cost: number): Decision | Promise<Decision>
  /** Units left of a key, by policy. */
  remaining(key: string): readonly number[]
  close(): void
}

export function openLimits({ policies, maxWait, penalty, leases }: ReadColumn): Limits {
  const memory = memoryStore({ clock: () => Math.round((START_MS + limits.now) * 1000) })
  let state!: Keyspace
  const store: Store = {
    local: leases === undefined,
    guard,
    now: () => memory.now(),
    close: () => memory.close(),
    keyspace(...opening) {
      state = memory.keyspace(...opening)
      if (leases) return elsewhere(state)
      const noteTurn = (us: number): void => void (limits.turn = (us - START_MS * 1000) / 1000)
      return maxWait === undefined ? state : booking(state, maxWait * 1000, noteTurn)
    },
  }
  const options = { name: 'api', policies, store, ...(penalty && { penalty }) }
  const shared = leases && { leases: { ttl: leases.ttl, size: leases.size }, deadline: '1m' }
  const limiters: Limiter[] = Array.from({ length: leases?.processes ?? 1 }, () =>
    createLimiter({ ...options, ...shared }),
  )
  let calls = 0
  const limits: Limits = {
    now: 0,
    turn: 0,
    decide: (key, cost) => limiters[calls++ % limiters.length]!.decide(key, { cost }),
    remaining(key) {
      const { remaining, parts } = state.decide('peek', key, 0, 0) as Exclude<
        ReturnType<Keyspace['decide']>,
        Promise<unknown>
      >
      return parts ? policies.map((_, i) => parts[3 * i + 1]!) : [remaining]
    },
    close() {
      for (const limiter of limiters) void limiter.close()
      void memory.close()
    },
  }
  return limits
}

/** A keyspace in which each call books its turn, as `acquire` does, and the answer does not wait for it. */
function booking(state: Keyspace, maxWait: number, noteTurn: (us: number) => void): Keyspace {
  return {
    ...sameAs(state),
    decide(ask, key, cost) {
      const answer = state.decide(ask === 'consume' ? 'book' : ask, key, cost, maxWait)
      if (answer instanceof Promise || answer.reason !== undefined) return answer
      const turnAt = Math.max(answer.now, answer.at)
      noteTurn(turnAt)
      return { ...answer, turnAt, waitMs: Math.ceil((turnAt - answer.now) / 1000) }
    },
  }
}

/** A keyspace of another process, for limiters that lease. */
function elsewhere(state: Keyspace): Keyspace {
  return { ...sameAs(state), decide: async (...call) => state.decide(...call) }
}

function sameAs(state: Keyspace): Keyspace {
  return {
    policies: state.policies,
    penalty: state.penalty,
    decide: (...call) => state.decide(...call),
    confirm: (made) => state.confirm(made),
    cancel: (made) => state.cancel(made),
    correct: (change) => state.correct(change),
  }
}
