import '@sluice/calendar'
import './caller-clock.js'
import { type Answer, createLimiter, type LeaseOptions, type Limiter, type Store } from '@sluice/core'
import { ANSWER } from '@sluice/core/internal'
import { redisStore } from '@sluice/core/redis'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { serve } from './fleet-member.js'

/** Callers of one process who call for one key, each again as soon as it is answered. */
export interface Job {
  /** The server that the store connects to. */
  readonly redis: object
  readonly key: string
  readonly policies: readonly PolicySpec[]
  readonly callers: number
  /** Shared by the callers in equal parts. Default 1. */
  readonly connections?: number
  /** Calls of each caller. */
  readonly calls?: number
  /** No call begins later than this after the first answer, by Redis's clock. */
  readonly seconds?: number
  /** Leases of the limiters, which then give answers of their own. */
  readonly leases?: LeaseOptions
}

export interface Result {
  readonly calls: number
  /** When calls were decided, by Redis's clock in microseconds. */
  readonly admittedAt: readonly number[]
  readonly deniedAt: readonly number[]
  /** Units that the store admitted: with leases more than one a call. */
  readonly booked: number
  /** The units left after each call that was admitted. */
  readonly remaining: readonly number[]
  /** The waits of denied calls, in milliseconds. */
  readonly waitsMs: readonly number[]
  /**
   * When calls with leases were served, in microseconds by Redis's clock: when Redis decided, or when the process served them
   * from its lease, at the earliest that its replies allow.
   */
  readonly servedAt: readonly number[]
  /** Messages of what calls rejected with, each once. */
  readonly errors: readonly string[]
  /** This process's clock in milliseconds, when it began and when it was done. */
  readonly wallMs: readonly number[]
}

serve<Job, Result>(
  async ({
    redis,
    key,
    policies,
    callers,
    connections = 1,
    calls = Infinity,
    seconds = Infinity,
    leases,
  }) => {
    const log = { calls: 0, admittedAt: [] as number[], deniedAt: [] as number[], remaining: [] as number[] }
    const waitsMs: number[] = []
    const servedAt: number[] = []
    const leasedAt: number[] = []
    const errors = new Set<string>()
    let [first, latest, booked, ahead] = [Infinity, -Infinity, 0, Infinity]
    const hear = ({ now, reason, remaining }: Answer, cost: number) => {
      ahead = Math.min(ahead, processClock() - now)
      first = Math.min(first, now)
      latest = Math.max(latest, now)
      if (reason === undefined) {
        log.remaining.push(remaining)
        booked += cost
      }
      const instants = reason === undefined ? log.admittedAt : log.deniedAt
      instants.push(now)
    }
    const call = async (limiter: Limiter) => {
      log.calls++
      try {
        const { allowed, retryAfterMs, [ANSWER]: answer } = await limiter.consume(key)
        if (!allowed) waitsMs.push(retryAfterMs)
        else if (answer.from === 'lease') leasedAt.push(processClock())
        else if (leases) servedAt.push(answer.now)
      } catch (error) {
        errors.add(String(error))
      }
    }
    const callAgain = async (limiter: Limiter) => {
      for (let n = 0; n < calls && !(latest - first > seconds * 1e6); n++) await call(limiter)
    }

    const stores = Array.from({ length: connections }, () => heard(redisStore(redis), hear))
    const limiters = stores.map((store) => {
      const options = { deadline: '30s', onStoreError: 'throw', ...(leases && { leases }) } as const
      return createLimiter({ name: 'fleet', policies: policies.map(policyOf), store, ...options })
    })
    await Promise.all(limiters.map((limiter) => limiter.peek(key)))
    return async () => {
      const began = Date.now()
      await Promise.all(Array.from({ length: callers }, (_, i) => callAgain(limiters[i % connections]!)))
      for (const store of stores) await store.close()
      for (const at of leasedAt) servedAt.push(at - ahead) // too many to be arguments of one call
      return { ...log, booked, waitsMs, servedAt, errors: [...errors], wallMs: [began, Date.now()] }
    }
  },
)

/** The clock of this process in microseconds. Its difference from Redis's clock does not change. */
function processClock(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

/** Wraps a store so that `hear` gets each answer to a `consume`, with its cost: unlike decisions, answers have the store's instant. */
function heard(store: Store, hear: (answer: Answer, cost: number) => void): Store {
  return {
    guard: store.guard!,
    keyspace(...args) {
      const keyspace = store.keyspace(...args)
      const decide = keyspace.decide.bind(keyspace)
      keyspace.decide = async (...call) => {
        const answer = await decide(...call)
        if (call[0] === 'consume') hear(answer, call[2])
        return answer
      }
      return Object.defineProperty(keyspace, 'consume', { value: undefined }) // so that all calls are heard
    },
    now: () => store.now(),
    close: () => store.close(),
  }
}
