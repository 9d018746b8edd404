import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, ChargeCounts, Correction, DatedCharge, Reason, Report } from '../store.js'
import { Bookings, type MemoryBooking } from './bookings.js'
import { CHUNK_ROWS, type Chunk, type TableOwner } from './chunks.js'
import type { KeyReservations, ReservationEntry } from './key-reservations.js'
import { fitsWithin, MemoryAnswer, type PlainCalls, plainCallsOf } from './plain-calls.js'
import { type PolicyList, PolicyLists } from './policy-lists.js'
import { reasonOf, Refusals, Restrictions } from './restrictions.js'
import { Cursor, DENIED, NOT_DENIED } from './rows.js'

/**
 * The state of every key of one limiter under lists of policies of the same shapes (algorithms and windows). Lists may differ in
 * limits, so each call passes its own.
 */
export class Table {
  readonly cursor: Cursor
  readonly restrictions = new Restrictions()
  readonly bookings = new Bookings()
  readonly refusals = new Refusals()
  /** The reservations of keys by their rows, of keyspaces that reserve. */
  readonly reserved = new Map<number, KeyReservations>()
  readonly lists: PolicyLists
  /** Set when the store dropped the table because it held no key; another table may have its shapes now. */
  isDropped = false
  /** The callbacks of its keyspaces, which receive notices about its keys. */
  readonly reports = new Set<Report>()
  /** Whether it was reported that keys are forgotten, and the `maxKeys` that the last warning named as needed; 0 before one. */
  hasWarned = false
  neededKeys = 0
  readonly #chunks: Chunk<Table>[] = []
  /** Decides plain calls, which are nearly all, in one pass; undefined if an algorithm cannot. */
  readonly #plain: PlainCalls | undefined

  /**
   * Makes an empty table of keys and their state in the store `owner`, for all lists of policies that have the shapes (algorithms and
   * windows) of these. `cursor` points at the row of one key after the other. `lists` numbers the lists of policies under which keys
   * are decided. `#plain` decides the usual calls in one pass; undefined if an algorithm cannot.
   */
  constructor(
    policies: readonly Policy[],
    private readonly owner: TableOwner<Table>,
  ) {
    this.cursor = new Cursor(policies)
    this.lists = new PolicyLists(policies)
    this.#plain = plainCallsOf(policies, this.cursor, this.restrictions, this.lists)
  }

  /**
   * Decides a call of the kind `ask` for `cost` units of a key; a booking may wait up to `maxWait` microseconds. A key's state lies
   * in a row. A key without one gets a row first if its call charges and surely passes, and is decided on row 0 otherwise, which
   * stays blank. A call that charges is decided in one pass by `#plain` where that is possible: the key has a row and no bookings
   * (charges for later, or to be undone). Any other call takes the long way (`#decideAny`).
   */
  decide(list: PolicyList, ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const now = this.owner.now()
    let row = this.cursor.rows.find(key)
    // What few calls do lies in other functions: V8 compiles a path into one piece only while its functions are small.
    const isPlain = cost > 0 && (ask === 'consume' || ask === 'book')
    if (row === 0 && isPlain) row = this.#addIfFits(list, key, now, cost)
    if (row !== 0 && isPlain && (this.bookings.size === 0 || !this.bookings.has(row))) {
      this.cursor.select(row)
      const answer = this.#plain?.decide(list, row, now, cost, maxWait)
      if (answer !== undefined) return this.#withTime(answer)
    }
    return this.#withTime(this.#decideAny(new OpenCall(list, key, row, now, cost), ask, maxWait))
  }

  /** Gives a key without state a row if its call surely passes, and returns it. Otherwise returns 0: denials take no memory. */
  #addIfFits(list: PolicyList, key: string, now: number, cost: number): number {
    return this.#plain && fitsWithin(list.policies, cost) ? this.#add(key, now) : 0
  }

  /** Returns an answer whose `now`, if it is a denial, is the clock's own time: the wait then includes what the clock is behind. */
  #withTime(answer: Answer): Answer {
    if (answer.reason === undefined) return answer
    const { behind } = this.owner // above 0 after the clock was set back, as the store's time never runs back
    return behind > 0 ? { ...answer, now: answer.now - behind } : answer
  }

  /** Whether a call surely passes now; charges nothing. False for a key with a block, hold or booking: only `decide` can tell. */
  fits({ policies }: PolicyList, key: string, cost: number): boolean {
    const now = this.owner.now()
    const row = this.cursor.rows.find(key)
    if (this.bookings.has(row) || this.restrictions.has(row, now)) return false
    this.cursor.select(row)
    return this.cursor.fits(policies, now, cost)
  }

  /**
   * Decides any call: finds the instant at which it passes, charges it then unless it only asks ('peek', 'try'), and makes the
   * answer. A denial by a limit, but not of 'peek' or 'commit', is noted in the key's row if it has one, and counts as a refusal for
   * a penalty, until the key has been full for `forgetAfter`.
   */
  #decideAny(call: OpenCall, ask: Ask, maxWait: number): Answer {
    const { row, now, cost } = call
    const { penalty } = call.list
    this.cursor.select(row)
    const restriction = this.restrictions.has(row, now) ? this.restrictions.lastOf(row) : undefined
    call.restrictedUntil = restriction ? Math.max(restriction.blockedUntil, restriction.heldUntil) : now
    this.#findInstant(call)
    const reason = reasonOf(restriction, now, call.at, maxWait)
    let booking: MemoryBooking | undefined
    let isRefusalCounted = false
    const charges = ask !== 'peek' && ask !== 'try'
    if (reason === undefined && cost > 0 && charges) booking = this.#charge(call, ask === 'commit')
    else if (reason === 'limit' && row !== 0 && ask !== 'peek' && ask !== 'commit') {
      this.cursor.rows.record(row, call.list.number, DENIED)
      isRefusalCounted = penalty !== undefined
      if (penalty) this.#penalize(call, penalty)
    }
    const answer = this.#answer(call, reason, booking)
    const { blockedUntil } = this.restrictions.lastOf(row)
    if (reason !== undefined && blockedUntil > now) answer.blockedUntil = blockedUntil
    if (isRefusalCounted) this.refusals.forgetAt(row, answer.resetAt + penalty!.forgetAfter)
    return answer
  }

  /**
   * Sets `call.at`, the instant at which the call passes, to the latest of the instants of all policies (`cursor.instants`), and
   * `call.binding` to the policy that has it. It is not before the end of a block or hold, nor, for a cost, before the last booking.
   */
  #findInstant(call: OpenCall): void {
    const { row, cost, restrictedUntil } = call
    const { policies } = call.list
    const { states, instants } = this.cursor
    const from = cost === 0 ? restrictedUntil : Math.max(restrictedUntil, this.bookings.lastOf(row))
    let at = from
    let binding = 0
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const earliest = cost === 0 ? from : policy.algorithm.earliest(states[i]!, policy, from, cost)
      instants[i] = earliest
      if (earliest > at) {
        at = earliest
        binding = i
      }
    }
    call.at = at
    call.binding = binding
  }

  /**
   * Charges the call at the instant `call.at`; the state of a full key begins anew. Returns a booking if that instant is after now
   * or the call `mayBeUndone`: its `undo` holds the cells of before, and what the rings (logs) overwrite until `seal`. Any other
   * charge gives the key a new version, so that no earlier booking can be undone by what it holds.
   */
  #charge(call: OpenCall, mayBeUndone: boolean): MemoryBooking | undefined {
    const { list, key, now, cost, at } = call
    const { cursor, bookings } = this
    const row = call.row || this.#add(key, now)
    call.row = row
    cursor.rows.record(row, list.number, NOT_DENIED)
    const isFull = this.#isFull(list.policies, row, now)
    const isBooked = at > now || mayBeUndone
    const undo = isBooked ? bookings.open(row, at, cursor.cells(), cursor.rings()) : undefined
    if (isFull) cursor.renew(list.policies, now)
    cursor.admit(list.policies, at, cost)
    if (!undo) {
      bookings.bumpVersion(row)
      return undefined
    }
    for (const ring of cursor.rings()) ring.seal()
    return { key, at, cost, decidedAt: now, undo, isCancelled: false }
  }

  /** Whether the key in `row` is full and has no booking ahead. Its row might have been freed, so it is charged as a new key. */
  #isFull(policies: readonly Policy[], row: number, now: number): boolean {
    return this.bookings.lastOf(row) <= now && this.cursor.isFull(policies, now)
  }

  /**
   * Counts a refused call for the penalty, which may block the key: the call then passes when the block ends (`until`). With
   * `then: 'fresh'` the block also clears the key's state, and marks its bookings as lost.
   */
  #penalize(call: OpenCall, penalty: Penalty): void {
    const { instants } = this.cursor
    const until = this.refusals.penalize(call.row, penalty, call.now, this.restrictions, instants)
    call.restrictedUntil = Math.max(call.restrictedUntil, until)
    if (until > call.now && penalty.then === 'fresh') {
      this.bookings.discard(call.row)
      this.bookings.forget(call.row)
      this.reserved.delete(call.row)
      this.cursor.clear()
      call.at = call.now
    }
    call.at = Math.max(call.at, call.restrictedUntil) // to which `penalize` has moved the instants of the policies that refuse
    call.binding = instants.indexOf(call.at)
  }

  /**
   * Makes the answer: the smallest `remaining` and the latest `resetAt` of all policies. If there are several, `parts` has the
   * values of each. While the key is blocked, held or booked ahead, nothing remains, and `resetAt` is that of a key that stands at
   * the end of all that (`openFrom`) as it does now. `used` is what counts now, or with a booking ahead at its instant (`counted`).
   * The policy with the least left is binding; for a denial (`reason`) it is the one that admits the call last.
   */
  #answer(call: OpenCall, reason: Reason | undefined, booking: Booking | undefined): MemoryAnswer {
    const { row, now, at, restrictedUntil } = call
    const { policies } = call.list
    const { states, instants } = this.cursor
    const counted = Math.max(now, this.bookings.lastOf(row))
    const openFrom = Math.max(restrictedUntil, counted)
    const used = Array<number>(policies.length)
    const parts: number[] | undefined = policies.length > 1 ? [] : undefined
    let least = Infinity
    let { binding } = call
    let resetAt = restrictedUntil
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      policy.algorithm.view(states[i]!, policy, counted, view)
      used[i] = policy.capacity - view.remaining
      if (openFrom > counted) policy.algorithm.view(states[i]!, policy, openFrom, view)
      if (openFrom > now || view.remaining < 0) view.remaining = 0
      if (view.remaining < least) {
        least = view.remaining
        if (reason === undefined) binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts?.push(instants[i]!, view.remaining, view.resetAt)
    }
    const answer = new MemoryAnswer(now, at, reason, least, resetAt)
    answer.binding = binding
    answer.parts = parts
    answer.booking = booking
    answer.used = used
    return answer
  }

  /** Returns how a booking stands at its turn: 'lost' if the state with it is gone, 'held' if its key is held or blocked now. */
  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    const now = this.owner.now()
    if ((booking as MemoryBooking).undo.epoch.isLost) return 'lost'
    return this.restrictions.has(this.cursor.rows.find(booking.key), now) ? 'held' : 'stands'
  }

  /**
   * Cancels a booking, once. If no call has written the key's state since, restores the copy of before (`undo`) and returns true.
   * Otherwise gives back the units that still count, unless the state that held them was discarded (`isLost`), and returns false.
   */
  cancel(policies: readonly Policy[], booking: Booking): boolean {
    const now = this.owner.now()
    const charge = booking as MemoryBooking
    const { key, cost, undo } = charge
    if (charge.isCancelled) return false
    charge.isCancelled = true
    const row = this.cursor.rows.find(key)
    if (this.bookings.undo(row, undo)) {
      this.cursor.select(row)
      this.cursor.restore(undo)
      return true
    }
    if (!undo.epoch.isLost) this.#release(policies, row, charge, cost, now)
    return false
  }

  /**
   * Applies a correction to a key, and returns the units that took effect; 0 for a block, hold or reset. A key without state has
   * row 0; a charge, a block and a hold make it a row. Whatever writes units gives the key a new version: an earlier booking that is
   * cancelled then releases its units, and no longer puts back the state of before.
   */
  correct(list: PolicyList, change: Correction): number {
    const now = this.owner.now()
    const { key } = change
    let row = this.cursor.rows.find(key)
    switch (change.kind) {
      case 'refund':
        if (row === 0) return 0
        this.cursor.select(row)
        this.bookings.bumpVersion(row)
        return this.cursor.admit(list.policies, now, -change.cost)
      case 'release':
        return this.#release(list.policies, row, change.charge, change.units, now)
      case 'charge':
        row = this.rowFor(key, now, list, row)
        return this.#chargeAnyway(list.policies, row, now, change.cost, change.counted)
      case 'block': {
        const { duration, isPenalty = false } = change
        const isLifted = duration === 0
        if (isLifted && row === 0) return 0
        // A penalty's block of no length only clears the refusals that were counted.
        if (isLifted && isPenalty) this.refusals.clear(row)
        else this.restrictions.block(this.rowFor(key, now, list, row), now, now + duration, isPenalty)
        return 0
      }
      case 'hold':
        this.restrictions.hold(this.rowFor(key, now, list, row), now + change.duration)
        return 0
      case 'reset':
        if (row !== 0) this.discard(row)
        return 0
    }
  }

  /**
   * Charges the key in `row`, whether the cost fits or not, but not before its last booking. Returns the units that took effect, and
   * tells `counted` what counts then.
   */
  #chargeAnyway(
    policies: readonly Policy[],
    row: number,
    now: number,
    cost: number,
    counted: ChargeCounts | undefined,
  ): number {
    this.bookings.bumpVersion(row)
    if (this.#isFull(policies, row, now)) this.cursor.renew(policies, now)
    const at = Math.max(now, this.bookings.lastOf(row))
    const counts = [now]
    const units = this.cursor.admit(policies, at, cost, counted && counts)
    counted?.(counts)
    return units
  }

  /**
   * Gives back up to `units` units of a charge, as far as they still count, and returns how many: none if the state began after the
   * charge was decided. If a booking lies ahead, they are released as of its instant, as a state is never written at an earlier one.
   */
  #release(policies: readonly Policy[], row: number, charge: DatedCharge, units: number, now: number) {
    const { cursor, bookings } = this
    if (row === 0) return 0 // the key has no state
    cursor.select(row)
    if (charge.decidedAt < cursor.born) return 0
    bookings.bumpVersion(row) // so that no earlier booking is undone by a copy of the state from before
    return cursor.release(policies, Math.max(now, bookings.lastOf(row)), charge, units)
  }

  /**
   * Gives back `units` units of a reservation (`entry`) of the key in `row`, as of the instant `now`, as far as they still count
   * under the policies. Returns how many took effect.
   */
  giveBack(
    { policies }: PolicyList,
    row: number,
    entry: ReservationEntry,
    units: number,
    now: number,
  ): number {
    return this.#release(policies, row, { ...entry, decidedAt: entry.at }, units, now)
  }

  /**
   * Returns the units that the open reservations (`own`) of the key in `row` hold under each policy, rounded up. Tries it out: gives
   * back each of them whole and counts what takes effect; `tentatively` then puts the state back. Those from before the state began
   * (`born`) hold nothing in it.
   */
  heldBy({ policies }: PolicyList, row: number, own: KeyReservations): readonly number[] {
    const now = this.#from(row)
    return this.cursor.tentatively(row, ({ states, born }) => {
      const open = own.openByEnd.filter(({ at }) => at >= born)
      return policies.map((policy, i) => {
        let held = 0
        for (const entry of open) held += policy.algorithm.release(states[i]!, policy, now, entry, entry.cost)
        return Math.ceil(held)
      })
    })
  }

  /**
   * Returns the instant at which `cost` units of the key in `row` pass, after its block and hold, if its open reservations (`own`) end
   * unsettled. Tries it out: ends one reservation after the other, all but `atEnd` of its units being given back, until the cost
   * passes before the next one ends. `tentatively` then puts the state back.
   */
  passesAt({ policies }: PolicyList, row: number, own: KeyReservations, cost: number): number {
    const { blockedUntil, heldUntil } = this.restrictions.lastOf(row)
    const last = this.bookings.lastOf(row)
    let from = Math.max(this.#from(row), blockedUntil, heldUntil)
    return this.cursor.tentatively(row, ({ states, born }) => {
      const earliest = (): number =>
        Math.max(
          from,
          ...policies.map((policy, i) => policy.algorithm.earliest(states[i]!, policy, from, cost)),
        )
      for (const entry of own.openByEnd) {
        const at = earliest()
        if (at <= entry.end) return at
        from = Math.max(from, entry.end)
        if (entry.at >= born)
          this.cursor.release(policies, Math.max(entry.end, last), entry, entry.cost - entry.atEnd)
      }
      return earliest()
    })
  }

  now(): number {
    return this.owner.now()
  }

  /** The instant from which on a key in `row` is asked: now, or that of its last booking. */
  #from(row: number): number {
    return Math.max(this.owner.now(), this.bookings.lastOf(row))
  }

  /** Removes the key in `row` though its state still counts. Marks its bookings as lost, so that calls that wait book again. */
  discard(row: number): void {
    this.bookings.discard(row)
    this.free(row)
  }

  /** Discards all keys, as `discard` does with one, row by row from the top. */
  discardAll(): void {
    const { rows } = this.cursor
    for (let row = rows.top; rows.size > 0; row--) if (rows.keyAt(row) !== undefined) this.discard(row)
  }

  /**
   * Frees the row of a key that is full again; any other goes through `discard`. With its last key the table takes its chunks (64
   * rows each) out of the store's list, from which keys to evict are drawn.
   */
  free(row: number): void {
    this.bookings.forget(row)
    this.restrictions.clear(row)
    this.refusals.clear(row)
    this.reserved.delete(row)
    this.cursor.rows.free(row)
    if (this.cursor.rows.size === 0)
      for (const chunk of this.#chunks.splice(0)) this.owner.chunks.remove(chunk)
    this.owner.removed()
  }

  /**
   * Makes the row of a key the current one, and returns its number. `known` is the number if the caller knows it; 0 stands for a key
   * without a row, which gets one. Notes in the row the `number` of the list of policies, by whose limits eviction judges the key.
   */
  rowFor(key: string, now: number, { number }: PolicyList, known = this.cursor.rows.find(key)): number {
    const { rows } = this.cursor
    const row = known || this.#add(key, now)
    rows.record(row, number, NOT_DENIED)
    this.cursor.select(row)
    return row
  }

  /**
   * Gives a key a new row and makes that the current one. Before, the store makes room (`adding`): if it is full, it evicts another
   * key, drawn from the chunks of all tables. A chunk is 64 rows; the table lists a new one when a row lies behind its last.
   */
  #add(key: string, now: number): number {
    const { chunks } = this.owner
    this.owner.adding(now)
    const row = this.cursor.rows.allocate(key)
    const first = this.#chunks.length * CHUNK_ROWS
    if (row >= first) this.#chunks.push(chunks.add(this, first))
    this.owner.added(this, row)
    this.cursor.select(row)
    return row
  }
}

/** A call for `cost` units of a key, while it is decided at `now`. `row` is the place of the key's state, 0 if it has none. */
class OpenCall {
  restrictedUntil = 0 // the end of the key's block and hold, `now` without one
  /** The instant at which the call passes, and the number of the policy that says so. */
  at = 0
  binding = 0

  /**
   * Notes what one call is about: `cost` units of `key` at `now`, under the policies and penalty of `list`. `row` has the key's state;
   * it is 0 for a key without state, until a charge gives the key a row.
   */
  constructor(
    readonly list: PolicyList,
    readonly key: string,
    public row: number,
    readonly now: number,
    readonly cost: number,
  ) {}
}

const view: View = { remaining: 0, resetAt: 0 }
