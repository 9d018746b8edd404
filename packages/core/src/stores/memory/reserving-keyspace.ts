import type { Policy } from '../../algorithms/contract/policy.js'
import type { ReservationChange, ReservationEffect, ReserveCall, Reserved } from '../reservations.js'
import type { Answer, Ask, Booking, Correction, Keyspace, Reservations } from '../store.js'
import { isDenied } from '../store.js'
import { ENDED, isOpen, KeyReservations, type ReservationEntry } from './key-reservations.js'
import type { PolicyList } from './policy-lists.js'
import type { Table } from './table.js'

/** A table, and the list of policies under which a keyspace decides there. */
export interface OpenTable {
  readonly table: Table
  readonly list: PolicyList
  /** The latest write to the state, where the clock may have been set back behind it. */
  readonly written?: number | undefined
}

/** A key as it stands at `now`: its row in a table, 0 without one, and its reservations that have not ended. */
interface KeyInTable extends OpenTable {
  readonly row: number
  readonly own: KeyReservations | undefined
  readonly now: number
}

/**
 * A keyspace that reserves, over a table. Each operation first gives back the key's reservations that have ended, each as of its
 * end, and then proceeds as without reservations. So the table knows of them only that a key that has some must be kept. If none
 * has ended, this costs a look at the earliest end.
 */
export class ReservingKeyspace implements Keyspace, Reservations {
  readonly reservations = this
  readonly penalty: Keyspace['penalty']

  /**
   * Keeps the state of a limiter that reserves, of which at most `max` reservations of a key are open at once. `openTable` returns
   * the table that holds the state; it is called at each use, as the store may have dropped a table without keys. It also returns
   * the list of policies as the table knows it, which has the limiter's penalty: the blocking of keys after too many denials.
   */
  constructor(
    private readonly openTable: () => OpenTable,
    readonly policies: readonly Policy[],
    private readonly max: number,
  ) {
    this.penalty = openTable().list.penalty
  }

  /**
   * Decides as the table does. Nothing is booked while units of the key are reserved. A denial, also by a block or hold, says when the
   * cost passes if all open reservations end unsettled. Before the next end (`nextEnd`) it is in vain to ask again, unless a
   * reservation is settled.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const { table, list, row, own } = this.#findWithoutEnded(key)
    if (!own?.openCount) return table.decide(list, ask, key, cost, maxWait)
    const answer = table.decide(list, ask, key, cost, 0)
    // A block after which the key begins anew has forgotten its reservations.
    if ((ask !== 'peek' && answer.reason === undefined) || !table.reserved.has(row)) return answer
    const held = { held: table.heldBy(list, row, own), nextEnd: own.nextEnd }
    if (answer.reason === undefined) return { ...held, ...answer }
    const at = Math.min(answer.at, table.passesAt(list, row, own, cost))
    const parts = answer.parts?.map((number, i) => (i % 3 === 0 ? Math.min(number, at) : number))
    return { ...answer, at, parts, ...held }
  }

  fits(key: string, cost: number): boolean {
    const { table, list } = this.#findWithoutEnded(key)
    return table.fits(list, key, cost)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#findWithoutEnded(booking.key).table.confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#findWithoutEnded(booking.key).table.cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    const { table, list } = this.#findWithoutEnded(change.key)
    return table.correct(list, change)
  }

  /**
   * Charges the key as a `consume` does, and keeps the charge as an open reservation. While the key has `max` open reservations, the
   * call is denied with the reason 'reservations', until the next of them ends (`nextEnd`) or the cost fits, whichever is later.
   * `written` is the latest write to the state, which lies ahead if the clock was set back: the charge counts as of no earlier
   * instant.
   */
  reserve(call: ReserveCall): Answer {
    const { key, cost } = call
    const { table, own, written = 0 } = this.#findWithoutEnded(key, this.max)
    if (own && own.openCount >= this.max) {
      const answer = this.decide('peek', key, cost, 0)
      if (answer.reason === undefined || answer.reason === 'limit') {
        const at = Math.max(own.nextEnd, answer.at)
        return { ...answer, reason: 'reservations', at, nextEnd: own.nextEnd }
      }
    }
    const answer = this.decide('consume', key, cost, 0)
    if (isDenied(answer)) return answer
    this.#reservationsOf(table, key, answer.now).add(call, answer.now, Math.max(answer.now, written))
    return answer
  }

  /**
   * Extends a reservation until `ttl` from now, or settles it: charges or gives back the difference between its cost and `units`.
   * `effect` are the units that count more, or below 0 less, because of a settlement. There are three cases: `open`; settled before,
   * which changes nothing and is told again; and 'late', for one that ended unsettled, whose units were given back at its end, so
   * that a settlement charges all of `units` and leaves a mark, of cost 0.
   */
  change(change: ReservationChange): ReservationEffect {
    const { key, id, end, kind } = change
    const found = this.#findWithoutEnded(key, this.max)
    const { own, now } = found
    const entry = own?.find(id)
    const open = entry && isOpen(entry) ? entry : undefined
    const wasSettled = entry && !open && entry.effect !== ENDED
    if (wasSettled) {
      const wasInTime = entry.cost > 0
      // After the end 0, as is told once the mark is gone.
      const effect = wasInTime && entry.end <= now ? 0 : entry.effect
      return { state: wasInTime ? 'settled' : 'late', effect, end }
    }
    if (open && kind === 'extend') {
      own!.extend(open, now + change.ttl, Math.min(open.cost, change.atEnd ?? open.atEnd))
      return { state: 'open', effect: 0, end: open.end }
    }
    // By what the list keeps of marks that are gone.
    if (!entry && own?.wasSettled(change)) return { state: 'settled', effect: 0, end }
    if (kind === 'extend') return { state: 'late', effect: 0, end }
    const effect = this.#settle(found, open, change, change.units)
    return { state: open ? 'settled' : 'late', effect, end }
  }

  /**
   * Settles a reservation at `units`: charges or gives back what `open` has charged too little or too much; without `open` nothing is
   * charged any more. Leaves a mark of that, and returns the units that took effect, below 0 if they were given back.
   */
  #settle(
    found: KeyInTable,
    open: ReservationEntry | undefined,
    { key, id }: Reserved,
    units: number,
  ): number {
    const { table, list, row, own, now } = found
    const difference = units - (open?.cost ?? 0)
    let effect = 0
    if (difference > 0) effect = table.correct(list, { kind: 'charge', key, cost: difference })
    if (difference < 0) effect = 0 - table.giveBack(list, row, open!, -difference, now)
    if (open) own!.settled(open, effect)
    else if (difference > 0) this.#reservationsOf(table, key, now).settledLate(id, effect, now)
    return effect
  }

  /** Returns the reservations of a key whose state is in the table; makes an empty list of them, kept from now on, if it had none. */
  #reservationsOf({ cursor, reserved }: Table, key: string, now: number): KeyReservations {
    const row = cursor.rows.find(key)
    const kept = reserved.get(row) ?? new KeyReservations(now)
    reserved.set(row, kept)
    return kept
  }

  /** Gives back the key's reservations that have ended. */
  giveBackEnded(key: string): void {
    this.#findWithoutEnded(key)
  }

  /**
   * Finds a key, and first gives back its reservations that have ended, each as of its end, except for what stays charged then
   * (`atEnd`). Returns the table, the key's row in it and its other reservations (`own`). An ended reservation leaves a mark, so
   * that a late settlement is recognized. With `max`, the most open reservations of a key, the oldest marks are forgotten if there
   * are too many for one more.
   */
  #findWithoutEnded(key: string, max = Infinity): KeyInTable {
    const { table, list, written } = this.openTable()
    const row = table.cursor.rows.find(key)
    const now = table.now()
    let own = table.reserved.get(row)
    if (own?.isDue(now, max)) {
      for (const entry of own.takeEnded(now, max))
        table.giveBack(list, row, entry, entry.cost - entry.atEnd, entry.end)
      if (own.nextEnd <= now) {
        table.reserved.delete(row)
        own = undefined
      }
    }
    return { table, list, written, row, own, now }
  }
}
