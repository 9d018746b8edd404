import type { Algorithm, Policy, View } from '../../algorithms/contract/policy.js'
import type { State } from '../../algorithms/contract/state.js'
import type { Answer, Booking, Reason } from '../store.js'
import type { PolicyList, PolicyLists } from './policy-lists.js'
import type { Restrictions } from './restrictions.js'
import { type Cursor, DENIED, NOT_DENIED } from './rows.js'

/**
 * Decides the plain calls of a table: `consume` or `book` of at least one unit on a key that has a row and no booking. Nearly
 * every call of a service is one, and an algorithm decides it in one pass, with `take`. The table decides the others: those that
 * may have to wait, those on a held key, refusals that a penalty counts and, under several policies, every denial.
 */
export interface PlainCalls {
  /** Decides for the key in `row`, which the cursor is on. Undefined, with nothing written, where the table has to decide. */
  decide(list: PolicyList, row: number, now: number, cost: number, maxWait: number): Answer | undefined
}

/**
 * Makes what decides plain calls (`consume` or `book` for a key without bookings): by `take`, with which an algorithm decides and
 * charges in one pass. Undefined if one of the algorithms has no `take`. For one policy, the usual case, there is a faster one. The
 * other parameters are the table's own: its current row, its blocks and holds, and its lists of policies.
 */
export function plainCallsOf(
  policies: readonly Policy[],
  cursor: Cursor,
  restrictions: Restrictions,
  lists: PolicyLists,
): PlainCalls | undefined {
  const takes = policies.flatMap(({ algorithm }) => algorithm.take ?? [])
  if (takes.length < policies.length) return undefined
  if (takes.length === 1) return new CallsUnderOne(takes[0]!, cursor, restrictions, lists)
  return new CallsUnderSeveral(takes, cursor, restrictions, lists)
}

/** Whether `cost` units pass for a key that has consumed nothing: no policy's capacity is smaller. */
export function fitsWithin(policies: readonly Policy[], cost: number): boolean {
  for (let i = 0; i < policies.length; i++) if (cost > policies[i]!.capacity) return false
  return true
}

/** One class for every answer, because V8 gives object literals at different places different hidden classes. */
export class MemoryAnswer implements Answer {
  binding: number
  parts: readonly number[] | undefined
  booking: Booking | undefined
  blockedUntil: number | undefined
  used: readonly number[] | undefined
  epoch: number | undefined

  /**
   * Makes an answer at `now` to a call that passes at `at` (Infinity: never); `reason` says why it is denied. Fields that few
   * answers have are empty here and set afterwards, so that all objects have one hidden class of V8.
   */
  constructor(
    readonly now: number,
    readonly at: number,
    readonly reason: Reason | undefined,
    readonly remaining: number,
    readonly resetAt: number,
  ) {
    this.binding = 0
    this.parts = undefined
    this.booking = undefined
    this.blockedUntil = undefined
    this.used = undefined
    this.epoch = undefined
  }
}

/** Decides calls on a blocked key too, so that a caller who is banned costs no more than one who is denied. */
class CallsUnderOne implements PlainCalls {
  readonly #state: State
  readonly #view: View = { remaining: 0, resetAt: 0 }

  /**
   * Prepares to decide calls under one policy, whose algorithm decides and charges by `take`. `cursor` points at the row of the key,
   * and `#state` is the policy's view of that row. `restrictions` are the blocks and holds of keys, and `lists` tells whether keys
   * are decided under several lists of policies: only then a row notes under which its key was.
   */
  constructor(
    private readonly take: Take,
    private readonly cursor: Cursor,
    private readonly restrictions: Restrictions,
    private readonly lists: PolicyLists,
  ) {
    this.#state = cursor.states[0]!
  }

  /**
   * Decides a plain call under one policy, for the key in `row`, which the cursor is on. Undefined, with nothing written, where
   * the table has to decide: the call may wait for its turn, the key is held, or a penalty counts the refusal. If only the cost is
   * missing after the charge, the key was full before. Its state begins anew then (`renew`), so that a later release of an older
   * charge gives nothing back. If the table has several lists of policies, the row notes under which its key was decided.
   */
  decide(list: PolicyList, row: number, now: number, cost: number, maxWait: number): Answer | undefined {
    if (this.restrictions.live > 0 && this.restrictions.has(row, now))
      return this.#blocked(list, row, now, cost)
    const policy = list.policies[0]!
    const view = this.#view
    const at = this.take(this.#state, policy, now, cost, view)
    if (at > now) return this.#denied(list, row, now, at, maxWait)
    if (view.remaining === policy.capacity - cost) this.cursor.renew(list.policies, now)
    if (this.lists.areSeveral) this.cursor.rows.record(row, list.number, NOT_DENIED)
    return new MemoryAnswer(now, now, undefined, view.remaining, view.resetAt)
  }

  /**
   * Denies a call that passes at `at` at the earliest (Infinity: never); `take` has filled `#view`. Undefined if the table has to
   * decide: a penalty counts the refusal, the call may be booked, as `at` is no more than `maxWait` microseconds away, or more units
   * count than the capacity.
   */
  #denied(list: PolicyList, row: number, now: number, at: number, maxWait: number): Answer | undefined {
    const { remaining, resetAt } = this.#view
    const isAboveCapacity = remaining < 0
    if (isAboveCapacity) return undefined
    if (at === Infinity) return new MemoryAnswer(now, at, 'cost', remaining, resetAt)
    if (list.penalty || at <= now + maxWait) return undefined
    this.cursor.rows.record(row, list.number, DENIED)
    return new MemoryAnswer(now, at, 'limit', remaining, resetAt)
  }

  /**
   * Denies a call on a blocked key, with the earliest instant at which the cost passes once block and hold are over (`until`), and
   * the reason 'cost' if it never fits. Undefined if the key is only held, which the table decides.
   */
  #blocked(list: PolicyList, row: number, now: number, cost: number): Answer | undefined {
    const { blockedUntil, heldUntil } = this.restrictions.lastOf(row)
    if (blockedUntil <= now) return undefined
    const policy = list.policies[0]!
    const view = this.#view
    const until = Math.max(blockedUntil, heldUntil)
    policy.algorithm.view(this.#state, policy, now, view)
    const used = [policy.capacity - view.remaining]
    policy.algorithm.view(this.#state, policy, until, view)
    // Most blocks outlast the window, so that the cost fits when they end.
    const fits = cost <= view.remaining
    const at = fits ? until : policy.algorithm.earliest(this.#state, policy, until, cost)
    const reason = at === Infinity ? 'cost' : 'blocked'
    const answer = new MemoryAnswer(now, at, reason, 0, Math.max(until, view.resetAt))
    answer.blockedUntil = blockedUntil
    answer.used = used
    return answer
  }
}

/** Leaves keys with a block or hold to the table. */
class CallsUnderSeveral implements PlainCalls {
  readonly #view: View = { remaining: 0, resetAt: 0 }

  /**
   * Prepares to decide calls under several policies, whose algorithms decide and charge by `takes`, one each. `cursor` points at the
   * row of the key. `restrictions` are the blocks and holds of keys, and `lists` tells whether keys are decided under several lists
   * of policies: only then a row notes under which its key was.
   */
  constructor(
    private readonly takes: readonly Take[],
    private readonly cursor: Cursor,
    private readonly restrictions: Restrictions,
    private readonly lists: PolicyLists,
  ) {}

  /**
   * Decides a plain call under several policies, for the key in `row`, which the cursor is on. Undefined, with nothing written,
   * where the table has to decide: the key is blocked or held, or see `#denied`. All policies but the first are asked before any is
   * charged, so only the first, which is charged first, can still deny. `parts` has three numbers a policy: earliest instant,
   * remaining, resetAt. If under each policy only the cost is missing after the charge, the key was full before. Its state begins
   * anew then (`renew`), so that a later release of an older charge gives nothing back.
   */
  decide(list: PolicyList, row: number, now: number, cost: number, maxWait: number): Answer | undefined {
    const { policies } = list
    const { states, instants } = this.cursor
    if (this.restrictions.live > 0 && this.restrictions.has(row, now)) return undefined
    let fits = true
    for (let i = 1; i < policies.length; i++) {
      instants[i] = policies[i]!.algorithm.earliest(states[i]!, policies[i]!, now, cost)
      if (instants[i]! > now) fits = false
    }
    if (!fits) {
      instants[0] = policies[0]!.algorithm.earliest(states[0]!, policies[0]!, now, cost)
      return this.#denied(list, row, now, cost, maxWait)
    }
    const view = this.#view
    const parts = Array<number>(3 * policies.length)
    let binding = 0
    let remaining = Infinity
    let resetAt = now
    let wasFull = true
    for (let i = 0; i < policies.length; i++) {
      instants[i] = this.takes[i]!(states[i]!, policies[i]!, now, cost, view)
      if (instants[i]! > now) return this.#denied(list, row, now, cost, maxWait) // only the first can, before any is charged
      if (view.remaining < remaining) {
        remaining = view.remaining
        binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      if (view.remaining !== policies[i]!.capacity - cost) wasFull = false
      parts[3 * i] = now
      parts[3 * i + 1] = view.remaining
      parts[3 * i + 2] = view.resetAt
    }
    if (wasFull) this.cursor.renew(policies, now)
    if (this.lists.areSeveral) this.cursor.rows.record(row, list.number, NOT_DENIED)
    const answer = new MemoryAnswer(now, now, undefined, remaining, resetAt)
    answer.binding = binding
    answer.parts = parts
    return answer
  }

  /**
   * Denies a call. The cursor's `instants` has for each policy the earliest instant at which the cost passes: after `now` if the
   * policy refuses it, which is asked by `take` then, as that charges nothing and fills the view. The latest is binding. `parts` has
   * three numbers a policy: earliest instant, remaining, resetAt. Undefined if the table has to decide: a penalty counts the refusal,
   * the call may be booked within `maxWait` microseconds, or more units count than the capacity of a policy.
   */
  #denied(list: PolicyList, row: number, now: number, cost: number, maxWait: number): Answer | undefined {
    const { policies, penalty } = list
    const { states, instants } = this.cursor
    const view = this.#view
    const parts = Array<number>(3 * policies.length)
    let [binding, at, remaining, resetAt] = [0, now, Infinity, now]
    for (let i = 0; i < policies.length; i++) {
      const instant = instants[i]!
      if (instant > now) this.takes[i]!(states[i]!, policies[i]!, now, cost, view)
      else policies[i]!.algorithm.view(states[i]!, policies[i]!, now, view)
      const isAboveCapacity = view.remaining < 0
      if (isAboveCapacity) return undefined
      if (instant > at) {
        at = instant
        binding = i
      }
      if (view.remaining < remaining) remaining = view.remaining
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts[3 * i] = instant
      parts[3 * i + 1] = view.remaining
      parts[3 * i + 2] = view.resetAt
    }
    const fitsLater = at !== Infinity
    const mayBeBooked = at <= now + maxWait
    if (fitsLater && (penalty || mayBeBooked)) return undefined
    if (fitsLater) this.cursor.rows.record(row, list.number, DENIED)
    const answer = new MemoryAnswer(now, at, fitsLater ? 'limit' : 'cost', remaining, resetAt)
    answer.binding = binding
    answer.parts = parts
    return answer
  }
}

type Take = NonNullable<Algorithm['take']>
