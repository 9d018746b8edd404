import type { Algorithm, Policy, View } from '../../algorithms/contract/policy.js'
import type { Answer } from '../store.js'
import type { Cursor } from './cursor.js'
import { MemoryAnswer } from './memory-answer.js'

/**
 * Decides the plain calls of a table: `consume` of at least one unit on a key that has a slot and no block, hold or booking.
 * That is nearly every call of a service. Algorithms decide it in one pass, with `take`.
 */
export class PlainCalls {
  readonly #cursor: Cursor
  readonly #takes: readonly Take[]
  readonly #view: View = { remaining: 0, resetAt: 0 }

  private constructor(cursor: Cursor, takes: readonly Take[]) {
    this.#cursor = cursor
    this.#takes = takes
  }

  /** Undefined if one of the algorithms has no `take`. */
  static of(policies: readonly Policy[], cursor: Cursor): PlainCalls | undefined {
    const takes = policies.flatMap(({ algorithm }) => algorithm.take ?? [])
    return takes.length === policies.length ? new PlainCalls(cursor, takes) : undefined
  }

  /** Decides for the key that the cursor is on. Undefined, with nothing written, if one of several policies refuses. */
  decide(policies: readonly Policy[], now: number, cost: number): Answer | undefined {
    if (policies.length === 1) return this.#one(policies[0]!, now, cost)
    return this.#areAllOpen(policies, now, cost) ? this.#all(policies, now, cost) : undefined
  }

  #one(policy: Policy, now: number, cost: number): Answer {
    const view = this.#view
    const at = this.#takes[0]!(this.#cursor.states[0]!, policy, now, cost, view)
    const reason = at <= now ? undefined : at === Infinity ? 'cost' : 'limit'
    return new MemoryAnswer(now, at, reason, 0, view.remaining, view.resetAt, undefined, undefined)
  }

  #areAllOpen(policies: readonly Policy[], now: number, cost: number): boolean {
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      if (policy.algorithm.earliest(this.#cursor.states[i]!, policy, now, cost) > now) return false
    }
    return true
  }

  #all(policies: readonly Policy[], now: number, cost: number): Answer {
    const view = this.#view
    const parts: number[] = []
    let binding = 0
    let remaining = Infinity
    let resetAt = now
    for (let i = 0; i < policies.length; i++) {
      this.#takes[i]!(this.#cursor.states[i]!, policies[i]!, now, cost, view)
      if (view.remaining < remaining) {
        remaining = view.remaining
        binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts.push(now, view.remaining, view.resetAt)
    }
    return new MemoryAnswer(now, now, undefined, binding, remaining, resetAt, parts, undefined)
  }
}

type Take = NonNullable<Algorithm['take']>
