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
  /** The instant of the first write since the state was lost or reset; undefined while the key does not exist. */
  #born: bigint | undefined
  readonly #cancelled = new Set<Entry>()
  /** Of each policy the state that the dropped writes had left when the key was full again. */
  #statesBefore: readonly unknown[] = []
  /** For a charge that found the key full again, what was dropped for it: cancelling it restores that. */
  readonly #droppedFor = new Map<Entry, { readonly writes: Entry[]; readonly before: readonly unknown[] }>()
  #blockedUntil = 0n
  #heldUntil = 0n
  readonly #refusals = new Refusals()

  /**
   * The answer that a store must give to `consume`: the cost is charged at `now` (microseconds), or denied. Without a `penalty`
   * no refusal is counted.
   */
  consume(rules: readonly Rule[], now: bigint, cost: bigint, penalty?: Penalty): Expected {
    return this.#ask('charge', rules, now, cost, 0n, penalty)
  }

  /** The answer that a store must give to `peek`, which decides as `consume` and charges nothing. */
  peek(rules: readonly Rule[], now: bigint, cost: bigint): Expected {
    return this.#ask('look', rules, now, cost, 0n)
  }

  /**
   * The answer that a store must give to a booking: the cost is charged at the first instant at which it fits, if that comes
   * within `maxWait` microseconds, and denied otherwise.
   */
  book(rules: readonly Rule[], now: bigint, cost: bigint, maxWait: bigint, penalty?: Penalty): Expected {
    return this.#ask('charge', rules, now, cost, maxWait, penalty)
  }

  /**
   * Cancels a booking, once: the result is false for one that was cancelled before. If the booking is the newest write, it is
   * undone and the result is true: the writes are again as before it. A booking that found the key full had dropped the earlier
   * writes (`#droppedFor`), and these come back too. Otherwise other writes have followed, so only the units of the booking are
   * released, and the result is false. Nothing is released if the booking is no longer among the writes.
   */
  cancel(now: bigint, booking: Entry): boolean {
    if (this.#cancelled.has(booking)) return false
    this.#cancelled.add(booking)
    if (this.#writes.at(-1) !== booking) {
      if (this.#writes.includes(booking)) this.release(booking.rules, now, booking, booking.cost)
      return false
    }
    const { writes, before } = this.#droppedFor.get(booking) ?? {
      writes: this.#writes.slice(0, -1),
      before: this.#statesBefore,
    }
    this.#writes = writes
    this.#statesBefore = before
    return true
  }

  /** Gives the newest units of the key back. Returns how many took effect; 0 for a key that does not exist, which stays so. */
  refund(rules: readonly Rule[], now: bigint, cost: bigint): number {
    return this.#born === undefined
      ? 0
      : this.#write({ kind: 'refund', at: now, cost, rules, decidedAt: now })
  }

  /**
   * Charges units whether they fit or not, behind all bookings: they count from `now`, or from the last booked instant if that is
   * later. Returns the units that took effect.
   */
  charge(rules: readonly Rule[], now: bigint, cost: bigint): number {
    const at = latest(now, this.#lastInstant())
    return this.#write({ kind: 'charge', at, cost, rules, decidedAt: now })
  }

  /**
   * Gives back units of one charge. Returns how many took effect. That is 0 for a charge that was decided before `#born`, the
   * instant at which the present state of the key began: the state with that charge was reset or dropped. While there are
   * bookings ahead of now, the write is dated at the last of them, so units that no longer count by then are not given back.
   */
  release(rules: readonly Rule[], now: bigint, charge: Charged, cost: bigint): number {
    if (this.#born === undefined || charge.decidedAt < this.#born) return 0
    const at = latest(now, this.#lastInstant())
    return this.#write({ kind: 'release', at, cost, charge, rules, decidedAt: now })
  }

  /**
   * Blocks the key for `duration` microseconds from now on; the latest block replaces any other. Returns 0, as no units take
   * effect. A key that did not exist does so from now on.
   */
  block(now: bigint, duration: bigint): number {
    this.#born ??= now
    this.#blockedUntil = now + duration
    return 0
  }

  /**
   * Holds the key for `duration` microseconds from now on, unless it is held for longer already. Meanwhile calls are denied, but
   * a booking may wait for the end, as it may not for that of a block. Returns 0, as no units take effect. A key that did not
   * exist does so from now on.
   */
  hold(now: bigint, duration: bigint): number {
    this.#born ??= now
    this.#heldUntil = latest(this.#heldUntil, now + duration)
    return 0
  }

  /** Forgets all that was written: units, block, hold and counted refusals. Returns 0, as no units take effect. */
  reset(): number {
    this.#writes = []
    this.#statesBefore = []
    this.#born = undefined
    this.#blockedUntil = this.#heldUntil = 0n
    this.#refusals.reset()
    return 0
  }

  /**
   * Adds an entry, such as a charge or a release, to the writes of the key, and returns how many units take effect: the fewest over
   * the policies, and at most the cost of the entry. Under one policy that is by how much the entry changes the charges that still
   * count, which its model computes anew from all writes, in parts of a unit. An admission or a charge of a key on which nothing
   * counts any more first drops the earlier writes.
   */
  #write(entry: Entry): number {
    const { rules } = entry
    if (entry.kind === 'admit' || entry.kind === 'charge') this.#beginAnew(entry)
    const instant = latest(entry.at, this.#lastInstant())
    const kept = () => rules.map((rule, i) => rule.model.kept(this.#stateUnder(rule, i), rule, instant))
    const keptBefore = kept()
    this.#born ??= entry.decidedAt
    this.#writes.push(entry)
    const keptAfter = kept()
    const effects = rules.map((rule, i) => {
      const change = Number(keptAfter[i]! - keptBefore[i]!)
      return Math.abs(change) / Number(rule.model.parts?.(rule) ?? 1n)
    })
    return Math.min(Number(entry.cost), ...effects)
  }

  /**
   * Drops all writes if the key is full again under every policy of this charge and nothing is booked ahead, as such a key counts
   * as one that was never used. The dropped writes are kept in `#droppedFor`: to cancel the charge brings them back.
   */
  #beginAnew(charge: Entry): void {
    const { rules, decidedAt } = charge
    const isFull = rules.every(
      (rule, i) => resetInstant(this.#stateUnder(rule, i), rule, decidedAt) <= decidedAt,
    )
    if (!isFull || this.#lastInstant() > decidedAt) return
    this.#droppedFor.set(charge, { writes: this.#writes, before: this.#statesBefore })
    this.#statesBefore = rules.map((rule, i) => this.#stateUnder(rule, i))
    this.#writes = []
    this.#born = decidedAt
  }

  /**
   * Returns the answer that a store must give to a call under the policies `rules`, and charges the cost if `what` is 'charge' and
   * the call is allowed. Each policy names the earliest instant at which it has room for the cost, from the end of any block, any
   * hold and the last booking on. The call could pass at the latest of these instants, `at`. It is allowed if that comes within
   * `maxWait` microseconds, and if no block goes on: a booking can wait for the end of a hold, but not of a block. A cost of 0
   * needs no room, and can pass when block and hold are over. With a `penalty`, a denial for want of room counts as a refusal,
   * which may begin a block. No policy that made the call wait then names an instant before the end of that block.
   *
   * What remains is viewed after the charge, at `viewedAt`, when block, hold and last booking are over. While that lies ahead of now,
   * nothing remains, as no unit can pass at once. The policy with the longest wait is binding in a denial, and the one with the
   * least remaining otherwise.
   */
  #ask(
    what: 'charge' | 'look',
    rules: readonly Rule[],
    now: bigint,
    cost: bigint,
    maxWait: bigint,
    penalty?: Penalty,
  ): Expected {
    let barredUntil = latest(now, this.#blockedUntil, this.#heldUntil)
    const from = latest(barredUntil, this.#lastInstant())
    let earliest = rules.map((rule, i) =>
      cost === 0n ? barredUntil : earliestInstant(this.#stateUnder(rule, i), rule, from, cost),
    )
    let at = latest(...earliest)
    const reason = this.#reason(now, at, maxWait)
    const booking: Entry = { kind: 'admit', at, cost, rules, decidedAt: now }
    const isCharged = what === 'charge' && reason === undefined && cost > 0n
    if (isCharged) this.#write(booking)

    const penaltyThatCounts = reason === 'limit' && what === 'charge' && penalty
    if (penaltyThatCounts) {
      this.#blockedUntil = latest(this.#blockedUntil, now + this.#refusals.add(now, penaltyThatCounts))
      barredUntil = latest(barredUntil, this.#blockedUntil)
      earliest = earliest.map((instant) => (instant > now ? latest(instant, barredUntil) : instant))
      at = latest(...earliest)
    }
    const viewedAt = latest(barredUntil, this.#lastInstant())
    const views = rules.map((rule, i) => {
      const standing = this.#stateUnder(rule, i)
      const room = viewedAt > now ? 0n : rule.model.room(standing, rule, viewedAt)
      return {
        remaining: Number(room > 0n ? room : 0n),
        resetAt: Number(resetInstant(standing, rule, viewedAt)),
      }
    })
    const remaining = Math.min(...views.map((view) => view.remaining))
    const resetAt = Math.max(...views.map((view) => view.resetAt))
    if (penaltyThatCounts) this.#refusals.keep(resetAt, penaltyThatCounts)
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
      used: rules.map((rule, i) =>
        Number(
          rule.capacity - rule.model.room(this.#stateUnder(rule, i), rule, latest(now, this.#lastInstant())),
        ),
      ),
      booking: isCharged && at > now ? booking : undefined,
    }
  }

  /**
   * Why a call whose cost passes at the instant `at` is denied now; undefined if it is allowed, as `at` comes within `maxWait`
   * microseconds. A cost that never passes comes first, then a block, which even a booking cannot wait for.
   */
  #reason(now: bigint, at: bigint, maxWait: bigint): Expected['reason'] {
    if (at === NEVER) return 'cost'
    if (this.#blockedUntil > now) return 'blocked'
    if (at <= now + maxWait) return undefined
    return this.#heldUntil > now ? 'held' : 'limit'
  }

  /** The latest instant at which units were charged or booked, which may lie ahead of now; 0 without any. */
  #lastInstant(): bigint {
    return latest(
      0n,
      ...this.#writes.filter(({ kind }) => kind === 'admit' || kind === 'charge').map(({ at }) => at),
    )
  }

  /**
   * The key's state under one policy of the list, at place `index`, counted again from all writes so far. Each write counts with
   * the numbers of the list that it came with, as they may change from call to call.
   */
  #stateUnder(rule: Rule, index: number): unknown {
    const writes = this.#writes.map((write) => ({ ...write, rule: write.rules[index]! }))
    return rule.model.recount(writes, this.#statesBefore[index])
  }
}

/** An instant as answers have it: a number, Infinity for never. */
function instantOf(instant: bigint): number {
  return instant === NEVER ? Infinity : Number(instant)
}
