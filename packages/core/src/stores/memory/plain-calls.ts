import type { Algorithm, Policy, View } from '../../algorithms/contract/policy.js'
import type { State } from '../../algorithms/contract/state.js'
import type { Answer } from '../store.js'
import type { Barrier, Barriers } from './barriers.js'
import type { Cursor } from './cursor.js'
import { MemoryAnswer } from './memory-answer.js'
import type { PolicyList, PolicyLists } from './policy-lists.js'

/**
 * Decides the plain calls of a table: `consume` of at least one unit on a key that has a row and no booking. Nearly every call
 * of a service is one, and an algorithm decides it in one pass, with `take`. What `decide` leaves alone is decided as any other
 * call: what a hold or a penalty bears on and, under several policies, every denial and every block.
 */
export interface PlainCalls {
  /** Decides for the key in `row`, which the cursor is on. Undefined, with nothing written, if it leaves the call alone. */
  decide(list: PolicyList, row: number, now: number, cost: number): Answer | undefined
}

/** What of a table the plain calls need. */
export interface PlainTable {
  readonly cursor: Cursor
  readonly barriers: Barriers
  readonly lists: PolicyLists
}

/** Undefined if one of the algorithms has no `take`. */
export function plainCallsOf(policies: readonly Policy[], table: PlainTable): PlainCalls | undefined {
  const takes = policies.flatMap(({ algorithm }) => algorithm.take ?? [])
  if (takes.length < policies.length) return undefined
  return takes.length === 1 ? new CallsUnderOne(table, takes[0]!) : new CallsUnderSeveral(table, takes)
}

/** Decides calls on a blocked key too, so that a caller who is banned costs no more than one who is denied. */
class CallsUnderOne implements PlainCalls {
  readonly #take: Take
  readonly #state: State
  readonly #cursor: Cursor
  readonly #barriers: Barriers
  readonly #lists: PolicyLists
  readonly #view: View = { remaining: 0, resetAt: 0 }

  constructor({ cursor, barriers, lists }: PlainTable, take: Take) {
    this.#take = take
    this.#state = cursor.states[0]!
    this.#cursor = cursor
    this.#barriers = barriers
    this.#lists = lists
  }

  decide(list: PolicyList, row: number, now: number, cost: number): Answer | undefined {
    const barrier = this.#barriers.of(row, now)
    if (barrier !== undefined) return this.#blocked(list.policies[0]!, barrier, now, cost)
    const view = this.#view
    const at = this.#take(this.#state, list.policies[0]!, now, cost, view)
    if (at > now) return this.#denied(list, row, now, at)
    if (this.#lists.areSeveral) this.#cursor.rows.record(row, list.listNumber, false)
    return new MemoryAnswer(now, now, undefined, 0, view.remaining, view.resetAt, undefined, undefined)
  }

  /** Undefined for a refusal that a penalty counts. */
  #denied(list: PolicyList, row: number, now: number, at: number): Answer | undefined {
    const { remaining, resetAt } = this.#view
    if (at === Infinity) return new MemoryAnswer(now, at, 'cost', 0, remaining, resetAt, undefined, undefined)
    if (list.penalty) return undefined
    this.#cursor.rows.record(row, list.listNumber, true)
    return new MemoryAnswer(now, at, 'limit', 0, remaining, resetAt, undefined, undefined)
  }

  /** Undefined for a hold without a block. */
  #blocked(
    policy: Policy,
    { blockedUntil, heldUntil }: Barrier,
    now: number,
    cost: number,
  ): Answer | undefined {
    if (blockedUntil <= now) return undefined
    const view = this.#view
    const opensAt = Math.max(blockedUntil, heldUntil)
    policy.algorithm.view(this.#state, policy, opensAt, view)
    // Most blocks outlast the window, so that the cost fits when they end.
    const fits = cost <= view.remaining
    const at = fits ? opensAt : policy.algorithm.earliest(this.#state, policy, opensAt, cost)
    const reason = at === Infinity ? 'cost' : 'blocked'
    return new MemoryAnswer(now, at, reason, 0, 0, Math.max(opensAt, view.resetAt), undefined, undefined)
  }
}

/** Leaves alone what one of the policies denies, and keys with a block or hold. */
class CallsUnderSeveral implements PlainCalls {
  readonly #takes: readonly Take[]
  readonly #cursor: Cursor
  readonly #barriers: Barriers
  readonly #lists: PolicyLists
  readonly #view: View = { remaining: 0, resetAt: 0 }

  constructor({ cursor, barriers, lists }: PlainTable, takes: readonly Take[]) {
    this.#takes = takes
    this.#cursor = cursor
    this.#barriers = barriers
    this.#lists = lists
  }

  decide(list: PolicyList, row: number, now: number, cost: number): Answer | undefined {
    const { policies } = list
    if (this.#barriers.of(row, now) !== undefined || !this.#areOthersOpen(policies, now, cost))
      return undefined
    const view = this.#view
    const parts = Array<number>(3 * policies.length)
    let binding = 0
    let remaining = Infinity
    let resetAt = now
    for (let i = 0; i < policies.length; i++) {
      const at = this.#takes[i]!(this.#cursor.states[i]!, policies[i]!, now, cost, view)
      if (at > now) return undefined // only the first can deny, before any is charged
      if (view.remaining < remaining) {
        remaining = view.remaining
        binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts[3 * i] = now
      parts[3 * i + 1] = view.remaining
      parts[3 * i + 2] = view.resetAt
    }
    if (this.#lists.areSeveral) this.#cursor.rows.record(row, list.listNumber, false)
    return new MemoryAnswer(now, now, undefined, binding, remaining, resetAt, parts, undefined)
  }

  /** Whether all policies but the first admit the call. The first is asked where it is charged. */
  #areOthersOpen(policies: readonly Policy[], now: number, cost: number): boolean {
    for (let i = 1; i < policies.length; i++) {
      const policy = policies[i]!
      if (policy.algorithm.earliest(this.#cursor.states[i]!, policy, now, cost) > now) return false
    }
    return true
  }
}

type Take = NonNullable<Algorithm['take']>
