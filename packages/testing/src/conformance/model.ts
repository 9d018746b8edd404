import type { Penalty } from '@sluice/core/store'
import type { Charged, Entry, Expected } from './expected.js'
import { earliestInstant, latest, NEVER, resetInstant } from './instant.js'
import { Refusals } from './refusals.js'
import type { Rule } from './rule.js'

/*
 * One key under a list of policies, as the contract describes it and as naively as possible: a list of everything
 * that was ever written, from which each answer is counted again.
 *
 * Where the contract leaves room, this is the reading. A cost above 0 is asked for from max(now, last booked
 * instant, end of block and hold), and while that lies ahead of now `remaining` is 0 for every policy. A cost of 0
 * asks from max(now, end of block and hold). The reasons go 'cost', 'blocked', 'held', 'limit'. Policies are
 * viewed after the admission where there was one; binding is the longest wait of a denied call and the least
 * remaining of an allowed one, the first declared on ties.
 */

export class KeyModel {
  #writes: Entry[] = []
  /** When the first call after the state was lost wrote something. */
  #born: bigint | undefined
  readonly #cancelled = new Set<Entry>()
  /** The charges from before one that found the key full. */
  readonly #replaced = new Map<Entry, Entry[]>()
  #blockedUntil = 0n
  #heldUntil = 0n
  readonly #refusals = new Refusals()

  /** The answer that a store must give to `consume`: the cost is charged now, or denied. `now` is in microseconds. */
  consume(rules: readonly Rule[], now: bigint, cost: bigint, penalty?: Penalty): Expected {
    return this.#ask(rules, now, cost, 0n, true, penalty)
  }

  /** The answer that a store must give to `peek`, which decides as `consume` and charges nothing. */
  peek(rules: readonly Rule[], now: bigint, cost: bigint): Expected {
    return this.#ask(rules, now, cost, 0n, false)
  }

  /**
   * The answer that a store must give to a booking: the cost is charged at the first instant at which it fits, if that comes within
   * `maxWait` microseconds, and denied otherwise.
   */
  book(rules: readonly Rule[], now: bigint, cost: bigint, maxWait: bigint, penalty?: Penalty): Expected {
    return this.#ask(rules, now, cost, maxWait, true, penalty)
  }

  /**
   * Cancels a booking. If it is the newest write, the writes are again as before it, and the result is true. Otherwise the
   * units of one that was not lost are released, and the result is false.
   */
  cancel(now: bigint, booking: Entry): boolean {
    if (this.#cancelled.has(booking)) return false
    this.#cancelled.add(booking)
    if (this.#writes.at(-1) !== booking) {
      if (this.#writes.includes(booking)) this.release(booking.rules, now, booking, booking.cost)
      return false
    }
    this.#writes = this.#replaced.get(booking) ?? this.#writes.slice(0, -1)
    return true
  }

  /** Gives back the newest units. Returns how many; 0 for a key that does not exist. */
  refund(rules: readonly Rule[], now: bigint, cost: bigint): number {
    return this.#born === undefined
      ? 0
      : this.#write({ kind: 'refund', at: now, cost, rules, decidedAt: now })
  }

  /** Charges units whether they fit or not, behind all bookings. Returns the units that took effect. */
  charge(rules: readonly Rule[], now: bigint, cost: bigint): number {
    const at = latest(now, this.#last())
    return this.#write({ kind: 'charge', at, cost, rules, decidedAt: now })
  }

  /**
   * Gives back units of one charge. Returns how many took effect: 0 for a charge from before the key was lost or reset, as its units
   * do not count any more.
   */
  release(rules: readonly Rule[], now: bigint, charge: Charged, cost: bigint): number {
    if (this.#born === undefined || charge.decidedAt < this.#born) return 0
    const at = latest(now, this.#last())
    return this.#write({ kind: 'release', at, cost, charge, rules, decidedAt: now })
  }

  /** Blocks the key from now on; the latest block wins. No units take effect. */
  block(now: bigint, duration: bigint): number {
    this.#born ??= now
    this.#blockedUntil = now + duration
    return 0
  }

  /** Holds the key from now on, unless it is held for longer. No units take effect. */
  hold(now: bigint, duration: bigint): number {
    this.#born ??= now
    this.#heldUntil = latest(this.#heldUntil, now + duration)
    return 0
  }

  /** Forgets all that was written, blocks and holds included. No units take effect. */
  reset(): number {
    this.#writes = []
    this.#born = undefined
    this.#blockedUntil = this.#heldUntil = 0n
    this.#refusals.reset()
    return 0
  }

  /**
   * The units that take effect: the least over the policies, and no more than were asked for even where a release frees
   * units of an earlier one (`releasesLater`).
   */
  #write(entry: Entry): number {
    const { rules } = entry
    if (entry.kind === 'admit' || entry.kind === 'charge') this.#beginAnew(entry)
    const instant = latest(entry.at, this.#last())
    const kept = () => rules.map((rule, i) => rule.model.kept(this.#standing(rule, i), rule, instant))
    const before = kept()
    this.#born ??= entry.decidedAt
    this.#writes.push(entry)
    const after = kept()
    const effects = rules.map((rule, i) => {
      const change = Number(after[i]! - before[i]!)
      return Math.abs(change) / Number(rule.model.parts?.(rule) ?? 1n)
    })
    return Math.min(Number(entry.cost), ...effects)
  }

  /** A key that is full again under the limits of a charge is as one that was never used. */
  #beginAnew(charge: Entry): void {
    const { rules, decidedAt } = charge
    const isFull = rules.every(
      (rule, i) => resetInstant(this.#standing(rule, i), rule, decidedAt) <= decidedAt,
    )
    if (!isFull || this.#last() > decidedAt) return
    this.#replaced.set(charge, this.#writes)
    this.#writes = []
    this.#born = decidedAt
  }

  /** Decides a call as the promises say, and writes it if `write` and if it passes. */
  #ask(
    rules: readonly Rule[],
    now: bigint,
    cost: bigint,
    maxWait: bigint,
    write: boolean,
    penalty?: Penalty,
  ): Expected {
    let open = latest(now, this.#blockedUntil, this.#heldUntil)
    const from = latest(open, this.#last())
    let earliest = rules.map((rule, i) =>
      cost === 0n ? open : earliestInstant(this.#standing(rule, i), rule, from, cost),
    )
    let at = latest(...earliest)
    const reason = this.#reason(now, at, maxWait)
    const booking: Entry = { kind: 'admit', at, cost, rules, decidedAt: now }
    const written = write && reason === undefined && cost > 0n
    if (written) this.#write(booking)

    const counted = reason === 'limit' && write && penalty
    if (counted) {
      this.#blockedUntil = latest(this.#blockedUntil, now + this.#refusals.add(now, counted))
      open = latest(open, this.#blockedUntil)
      earliest = earliest.map((instant) => (instant > now ? latest(instant, open) : instant))
      at = latest(...earliest)
    }
    const seen = latest(open, this.#last())
    const views = rules.map((rule, i) => {
      const standing = this.#standing(rule, i)
      const room = seen > now ? 0n : rule.model.room(standing, rule, seen)
      return { remaining: Number(room > 0n ? room : 0n), resetAt: Number(resetInstant(standing, rule, seen)) }
    })
    const remaining = Math.min(...views.map((view) => view.remaining))
    const resetAt = Math.max(...views.map((view) => view.resetAt))
    if (counted) this.#refusals.keep(resetAt, counted)
    return {
      now: Number(now),
      at: instantOf(at),
      reason,
      binding: reason ? earliest.indexOf(at) : views.findIndex((view) => view.remaining === remaining),
      remaining,
      resetAt,
      parts:
        rules.length > 1
          ? views.flatMap((view, i) => [instantOf(earliest[i]!), view.remaining, view.resetAt])
          : undefined,
      booking: written && at > now ? booking : undefined,
    }
  }

  /** Why a call that passes at `at` is denied now; undefined if it is not. */
  #reason(now: bigint, at: bigint, maxWait: bigint): Expected['reason'] {
    if (at === NEVER) return 'cost'
    if (this.#blockedUntil > now) return 'blocked'
    if (at <= now + maxWait) return undefined
    return this.#heldUntil > now ? 'held' : 'limit'
  }

  /** The last instant at which units were charged or booked; 0 without any. */
  #last(): bigint {
    return latest(
      0n,
      ...this.#writes.filter(({ kind }) => kind === 'admit' || kind === 'charge').map(({ at }) => at),
    )
  }

  /** The state of one policy of the list, counted again from everything that was ever written. `index` is the policy's place in the list. */
  #standing(rule: Rule, index: number): unknown {
    return rule.model.recount(this.#writes.map((write) => ({ ...write, rule: write.rules[index]! })))
  }
}

/** An instant as answers have it: a number, Infinity for never. */
function instantOf(instant: bigint): number {
  return instant === NEVER ? Infinity : Number(instant)
}
