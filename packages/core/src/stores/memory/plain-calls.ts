import type { Algorithm, Policy, View } from '../../algorithms/contract/policy.js'
import type { Answer } from '../store.js'
import type { Barrier } from './barriers.js'
import type { Cursor } from './cursor.js'
import { MemoryAnswer } from './memory-answer.js'
import type { PolicyList } from './policy-lists.js'

/**
 * Decides the plain calls of a table: `consume` of at least one unit on a key that has a slot and no booking. Nearly every call
 * of a service is one without a block or hold, which algorithms decide in one pass, with `take`. Calls on a blocked key are
 * plain too, so that a caller who is banned costs no more than one who is denied.
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

  /**
   * Decides for the key in `slot`, which the cursor is on. Undefined, with nothing written, for a refusal that a penalty counts,
   * a hold, and several policies of which one refuses.
   */
  decide(
    list: PolicyList,
    slot: number,
    barrier: Barrier | undefined,
    now: number,
    cost: number,
  ): Answer | undefined {
    if (barrier !== undefined) return this.#blocked(list.policies, barrier, now, cost)
    if (list.policies.length === 1) return this.#one(list, slot, now, cost)
    return this.#areAllOpen(list.policies, now, cost) ? this.#all(list, slot, now, cost) : undefined
  }

  #one(list: PolicyList, slot: number, now: number, cost: number): Answer | undefined {
    const view = this.#view
    const at = this.#takes[0]!(this.#cursor.states[0]!, list.policies[0]!, now, cost, view)
    if (at <= now) this.#cursor.slots.record(slot, list.listNumber, false)
    else if (at !== Infinity) {
      if (list.penalty) return undefined
      this.#cursor.slots.record(slot, list.listNumber, true)
    }
    const reason = at <= now ? undefined : at === Infinity ? 'cost' : 'limit'
    return new MemoryAnswer(now, at, reason, 0, view.remaining, view.resetAt, undefined, undefined)
  }

  /** Undefined unless the key is blocked, under one policy. */
  #blocked(
    policies: readonly Policy[],
    { blockedUntil, heldUntil }: Barrier,
    now: number,
    cost: number,
  ): Answer | undefined {
    if (blockedUntil <= now || policies.length > 1) return undefined
    const view = this.#view
    const policy = policies[0]!
    const state = this.#cursor.states[0]!
    const opensAt = Math.max(blockedUntil, heldUntil)
    const at = policy.algorithm.earliest(state, policy, opensAt, cost)
    policy.algorithm.view(state, policy, opensAt, view)
    const reason = at === Infinity ? 'cost' : 'blocked'
    return new MemoryAnswer(now, at, reason, 0, 0, Math.max(opensAt, view.resetAt), undefined, undefined)
  }

  #areAllOpen(policies: readonly Policy[], now: number, cost: number): boolean {
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      if (policy.algorithm.earliest(this.#cursor.states[i]!, policy, now, cost) > now) return false
    }
    return true
  }

  #all({ policies, listNumber }: PolicyList, slot: number, now: number, cost: number): Answer {
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
    this.#cursor.slots.record(slot, listNumber, false)
    return new MemoryAnswer(now, now, undefined, binding, remaining, resetAt, parts, undefined)
  }
}

type Take = NonNullable<Algorithm['take']>
