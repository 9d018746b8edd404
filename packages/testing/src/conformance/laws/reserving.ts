import { strict as assert } from 'node:assert'
import { createLimiter, memoryStore, type Policy } from '@sluice/core'
import type { Answer, DatedCharge, Keyspace, Store } from '@sluice/core/store'
import type {
  Penalty,
  ReservationChange,
  ReservationEffect,
  Reservations,
  ReservationSettings,
} from '@sluice/core/store'
import * as fc from 'fast-check'
import { law, type Subject } from '../law.js'
import { options, penalties } from '../numbers.js'
import { remainingUnder, type Session } from '../session.js'
import { starts } from '../traffic.js'

const DEEDS = [
  'reserve',
  'settle',
  'again',
  'extend',
  'consume',
  'refund',
  'charge',
  'undo',
  'block',
  'hold',
  'reset',
] as const

/** How long a store knows after its end whether a reservation was settled. */
const MARK_LIFE = 60_000_000

/** A log gives back what is among so many of its newest entries, also where a store undoes a charge by a release. */
const MOST_UNDONE = 1000

/** One deed on a key, whose numbers are parts of its policy's. */
const deeds = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 6, arbitrary: fc.constant<(typeof DEEDS)[number]>('reserve') },
      { weight: 4, arbitrary: fc.constant<(typeof DEEDS)[number]>('settle') },
      { weight: 9, arbitrary: fc.constantFrom(...DEEDS) },
    ),
    /** How much time passes before, in windows; 'end' goes to the next end. */
    pass: fc.constantFrom<number | 'end'>(0, 0, 0.01, 0.3, 1.2, 'end', 'end'),
    off: fc.integer({ min: -1, max: 1 }),
    cost: fc.constantFrom(0, 0.1, 0.34, 0.5, 1),
    real: fc.constantFrom(0, 0.05, 0.34, 0.6, 1),
    atEnd: fc.constantFrom(0, 0, 0.5, 1),
    ttl: fc.constantFrom(0.05, 0.4, 1, 1.7),
    pick: fc.nat({ max: 9 }),
  }),
  { minLength: 1, maxLength: 25 },
)

/**
 * Declares the laws of reservations. A key that reserves is compared with two others. One does not reserve: when a reservation ends,
 * the law gives its units back to that key, as `settle` would at that instant. The other reserves in the memory store: all answers
 * must be the same there, with what is held and when a denied call passes.
 */
export function reserving(subject: Subject): void {
  const scenario = fc.constantFrom(undefined, undefined, ...subject.shapes).chain((other) =>
    fc.record({
      numbers: fc.tuple(options(subject.shape), options(other ?? subject.shape)),
      other: fc.constant(other),
      start: starts,
      penalty: fc.option(fc.tuple(penalties, fc.constantFrom('window', 'fresh')), { nil: undefined }),
      max: fc.constantFrom(1, 2, 3, 1000),
      steps: deeds,
    }),
  )
  law(
    subject,
    'gives back at its end what a reservation holds, and settles it once',
    scenario,
    async (session, { numbers: [own, others], other, penalty: drawn, max, steps }) => {
      const policies = [subject.shape.factory(own), ...(other ? [other.factory(others)] : [])]
      const penalty = drawn && ({ ...drawn[0], then: drawn[1] } as Penalty)
      const keys = new ReservingKeys(
        session,
        policies,
        penalty,
        max,
        other ? subject.mostCostWith(other) : subject.mostCost,
      )
      if (!keys.areReserved) return expectRefusal(session.store, policies)
      for (const step of steps) await keys.carryOut(step)
      await keys.expectDeniedUntilTheNamedInstant()
      await keys.passTo(session.now + keys.forgottenIn)
      await keys.expectEqualAnswers(1)
    },
  )
}

/** A store that keeps no reservations is refused by a limiter that reserves. */
function expectRefusal(store: Store, policies: readonly Policy[]): void {
  const make = () => createLimiter({ name: 'reserving', policies, store, reservations: {} })
  assert.throws(make, { code: 'INVALID_OPTION' })
}

type Deed = typeof deeds extends fc.Arbitrary<readonly (infer D)[]> ? D : never

/** What the law knows of a reservation. */
interface KnownReservation extends DatedCharge {
  readonly id: number
  /** The end that its id names. */
  readonly firstEnd: number
  atEnd: number
  end: number
  /** 'lost' with the state that knew it. */
  fate: 'open' | 'settled' | 'ended' | 'lost'
  settled?: Settled
}

/** What a settling did, and until when a mark in the store tells it. */
type Settled = Pick<ReservationEffect, 'state' | 'effect'> & { readonly until: number }

/** A key that reserves in the store, one in memory, and one in the store that does not reserve. */
class ReservingKeys {
  readonly window: number
  readonly #key: string
  readonly #store: Keyspace
  readonly #memory: Keyspace
  readonly #plain: Keyspace
  readonly #penalty: Penalty | undefined
  readonly #capacity: number
  readonly #made: KnownReservation[] = []
  /** Reservations and marks of late settlings that were made. A key forgets none before they are four times `max`. */
  #entries = 0

  /**
   * Makes three keys that get the same calls. Two reserve, and keep at most `max` reservations: one in the store under test (`#store`),
   * and one in memory (`#memory`), whose answers are the right ones. The third (`#plain`), in the store under test, knows no
   * reservations: it is charged what they cost, and gets back what their ends give back. A call costs at most `mostCost`.
   */
  constructor(
    private readonly session: Session,
    private readonly policies: readonly Policy[],
    penalty: Penalty | undefined,
    private readonly max: number,
    private readonly mostCost: number,
  ) {
    this.#key = session.freshKey()
    this.window = Math.max(...policies.map(({ window }) => window))
    this.#capacity = Math.min(mostCost, ...policies.map(({ capacity }) => capacity))
    const memory = memoryStore({ clock: () => session.now })
    const open = (store: Store, terms?: ReservationSettings, by = penalty): Keyspace =>
      store.keyspace('reserving', policies, () => {}, by, terms)
    this.#store = open(session.store, { max })
    this.#penalty = this.#store.penalty // none where the store knows no penalties
    this.#memory = memory.keyspace('reserving', policies, () => {}, this.#penalty, { max })
    this.#plain = open(session.store)
  }

  /** Microseconds after which all reservations have ended (they last for 1.7 windows at most), and no mark is left. */
  get forgottenIn(): number {
    return 4 * this.window + 2 * MARK_LIFE
  }

  get areReserved(): boolean {
    return this.#store.reservations !== undefined
  }

  /**
   * Carries out one drawn act on all keys, and asserts that they answer alike. Before it the clock moves: by the part `pass` of a
   * window, or to `off` microseconds beside the next end of a reservation. `cost` and `real`, the cost to settle at, are parts of the
   * capacity, `ttl` of a window, and `atEnd` of the cost. `pick`, 0 to 9, chooses among the reservations made so far.
   */
  async carryOut({ kind, pass, off, cost: part, real, atEnd, ttl, pick }: Deed): Promise<void> {
    const nextEnd = Math.min(...this.#openReservations.map(({ end }) => end), Infinity)
    const to = pass === 'end' ? nextEnd + off : this.session.now + Math.floor(pass * this.window)
    await this.passTo(to < Infinity ? to : this.session.now)
    const cost = this.#partOfCapacity(part)
    const lasts = Math.max(1000, Math.floor(ttl * this.window))
    // Most drawn blocks, holds and resets change nothing, as little could be reserved otherwise.
    const [restricts, resets] = [pick > 6, pick > 5]
    switch (kind) {
      case 'reserve':
        await this.#reserve(cost, lasts, Math.floor(cost * atEnd))
        break
      case 'consume':
        await this.#askAll((keyspace) => keyspace.decide('consume', this.#key, cost, 0))
        break
      case 'refund':
      case 'charge':
        await this.#correctAll((keyspace) =>
          keyspace.correct({ kind, key: this.#key, cost: Math.max(1, cost) }),
        )
        break
      case 'undo':
        await this.#undo(Math.min(Math.max(1, cost), MOST_UNDONE))
        break
      case 'block':
        await this.#correctAll(
          (keyspace) => keyspace.correct({ kind, key: this.#key, duration: restricts ? lasts : 0 }), // 0 ends a block
        )
        break
      case 'hold':
        if (restricts)
          await this.#correctAll((keyspace) => keyspace.correct({ kind, key: this.#key, duration: lasts }))
        break
      case 'reset':
        if (resets) await this.#reset()
        break
      case 'settle':
      case 'again':
      case 'extend': {
        const among = kind === 'again' ? this.#made : this.#openReservations
        const known = among[pick % Math.max(1, among.length)]
        if (!known) break
        // A caller may name the end that its reservation began with, or the one that it has since it was extended.
        const namedEnd = pick % 2 === 0 ? known.firstEnd : known.end
        if (kind === 'extend') await this.#extend(known, lasts, Math.floor(known.cost * atEnd))
        else await this.#settle(known, this.#partOfCapacity(real), namedEnd)
      }
    }
    await this.expectEqualAnswers(cost)
  }

  /**
   * Moves the clock to `instant`. On the way, each open reservation that ends gives units back, as of its end: all but `atEnd`. The
   * stores do that by themselves; on the plain key, which knows no reservations, it is done here.
   */
  async passTo(instant: number): Promise<void> {
    for (const known of this.#openReservations.toSorted((one, other) => one.end - other.end)) {
      if (known.end > instant) break
      this.session.now = known.end
      known.fate = 'ended'
      await this.#release(known, known.cost - known.atEnd)
    }
    this.session.now = instant
  }

  /**
   * Asserts that all keys answer a peek alike: for one unit, for `cost` and for the whole capacity; and that the store says what
   * is reserved (`held`) exactly if a reservation is open.
   */
  async expectEqualAnswers(cost: number): Promise<void> {
    for (const asked of new Set([1, Math.max(1, cost), this.#capacity])) {
      const [store] = await this.#askAll((keyspace) => keyspace.decide('peek', this.#key, asked, 0))
      assert.equal(store!.held === undefined, this.#openReservations.length === 0)
    }
  }

  /**
   * Asserts that a call for the whole capacity, if it is denied now, is still denied a microsecond before the instant that the denial
   * names (`at`), and allowed at that instant, when meanwhile reservations end unsettled.
   */
  async expectDeniedUntilTheNamedInstant(): Promise<void> {
    const cost = this.#capacity
    const [asked] = await this.#askAll((keyspace) => keyspace.decide('try', this.#key, cost, 0))
    const { at, reason } = asked!
    if (reason === undefined || at > 2 ** 52) return
    if (at - 1 > this.session.now) {
      await this.passTo(at - 1)
      assert.notEqual((await this.#store.decide('peek', this.#key, cost, 0)).reason, undefined)
    }
    await this.passTo(at)
    assert.equal((await this.#store.decide('peek', this.#key, cost, 0)).reason, undefined)
  }

  get #openReservations(): readonly KnownReservation[] {
    return this.#made.filter(({ fate }) => fate === 'open')
  }

  #partOfCapacity(part: number): number {
    return Math.max(part === 0 ? 0 : 1, Math.floor(this.#capacity * part))
  }

  /** Reserves a cost on both keys that reserve, and consumes it on the plain one. Unless the first are full, all deny it or none. */
  async #reserve(cost: number, ttl: number, atEnd: number): Promise<void> {
    if (cost === 0) return
    const id = 1 + this.#made.length
    const isFull = this.#openReservations.length >= this.max
    const call = { key: this.#key, cost, id, ttl, atEnd }
    const [store, memory] = await this.#askReserving((reservations) => reservations.reserve(call))
    assert.deepEqual(this.#comparable(store!), this.#comparable(memory!))
    const { now, at, reason, epoch } = store!
    if (isFull) assert(['reservations', 'blocked', 'held'].includes(reason!))
    else assert.equal(reason, (await this.#plain.decide('consume', this.#key, cost, 0)).reason)
    this.#loseIfCleared(store!)
    const [end, fate] = [now + ttl, 'open'] as const
    if (reason) return
    this.#entries++
    this.#made.push({ id, at, cost, decidedAt: now, epoch, atEnd, firstEnd: end, end, fate })
  }

  /**
   * Settles a reservation at its real cost, and corrects the plain key by the same difference. A reservation that has ended is
   * 'late' and charged in full; one that was settled before changes nothing.
   */
  async #settle(known: KnownReservation, realCost: number, namedEnd: number): Promise<void> {
    const { id, decidedAt, fate, cost, settled } = known
    if (settled && !this.#mustBeKnown(settled, namedEnd)) return
    const call = { key: this.#key, id, decidedAt, end: namedEnd }
    const { state, effect } = await this.#change({ ...call, kind: 'settle', units: realCost })
    const isOpen = fate === 'open'
    const isSettledAgain = settled && (!this.#mayForgetMarks || (state === 'settled' && !isOpen))
    if (isSettledAgain) return this.#expectToldAgain(settled, state, effect)
    assert.equal(state, isOpen ? 'settled' : 'late')
    const more = realCost - (isOpen ? cost : 0)
    const taken = more < 0 ? 0 - (await this.#release(known, -more)) : await this.#charge(more)
    assert.equal(effect, taken)
    if (isOpen) {
      known.fate = 'settled'
      known.settled = { state, effect, until: known.end }
    } else if (realCost > 0) {
      // A late settling that charges nothing leaves no mark.
      this.#entries++
      known.settled = { state, effect, until: this.session.now + MARK_LIFE }
    }
  }

  /** Whether the keys have so many reservations and marks that a store may have forgotten the oldest. */
  get #mayForgetMarks(): boolean {
    return this.#entries >= 4 * this.max
  }

  /** Whether a store still has to know that a reservation was settled. `namedEnd` is the end that the next settling names. */
  #mustBeKnown({ state, until }: Settled, namedEnd: number): boolean {
    if (state === 'late') return this.session.now < until && !this.#mayForgetMarks // only a mark tells of it
    return this.session.now < namedEnd + MARK_LIFE
  }

  /** Asserts that a second settling is told the state and the effect of the first, or no effect where its mark may be gone. */
  #expectToldAgain(first: Settled, state: string, effect: number): void {
    assert.equal(state, first.state)
    const hasMark = this.session.now < first.until
    const told = this.#mayForgetMarks ? [0, first.effect] : [hasMark ? first.effect : 0]
    assert(told.includes(effect), `effect is ${effect}, expected one of ${told.join(', ')}`)
  }

  /**
   * Extends an open reservation on the two keys that reserve, and asserts that it now ends `ttl` from now, or at its former end if
   * that is later. The plain key, which knows no reservations, needs no change.
   */
  async #extend(known: KnownReservation, ttl: number, atEnd: number): Promise<void> {
    const { id, decidedAt, end } = known
    const most = Math.max(end, this.session.now + ttl)
    const { state, end: later } = await this.#change({
      key: this.#key,
      id,
      decidedAt,
      end,
      kind: 'extend',
      ttl,
      atEnd,
    })
    assert.deepEqual([state, later], ['open', most])
    known.end = later
    known.atEnd = atEnd
  }

  /** Removes the state of all keys, their reservations included. */
  async #reset(): Promise<void> {
    await this.#correctAll((keyspace) => keyspace.correct({ kind: 'reset', key: this.#key }))
    this.#lose()
  }

  /**
   * Notes that the state of the keys is lost, with all reservations in it, so that no store knows them any more. A microsecond
   * passes, by which later reservations are told from them.
   */
  #lose(): void {
    this.session.now++
    for (const known of this.#made) {
      if (known.fate !== 'ended') known.fate = 'lost'
      delete known.settled
    }
  }

  /** Notes that the state is lost if this answer began a block that clears the key. */
  #loseIfCleared({ now, reason, blockedUntil = now }: Answer): void {
    if (this.#penalty?.then === 'fresh' && reason === 'limit' && blockedUntil > now) this.#lose()
  }

  /**
   * Charges all three keys in a way that can be undone ('commit'), peeks at them, which must not matter, and undoes the charge: by
   * cancelling its booking, or by releasing its units if it has none. Asserts that the keys answer alike.
   */
  async #undo(cost: number): Promise<void> {
    const undo = async (keyspace: Keyspace): Promise<Answer> => {
      const answer = await keyspace.decide('commit', this.#key, cost, 0)
      const { reason, now, at, booking } = answer
      for (const asked of [1, this.#capacity]) await keyspace.decide('peek', this.#key, asked, 0)
      const charge = { at, cost, decidedAt: now }
      if (booking) assert.equal(await keyspace.cancel(booking), true)
      else if (!reason) await keyspace.correct({ kind: 'release', key: this.#key, charge, units: cost })
      return answer
    }
    await this.#askAll(undo)
  }

  async #release(charge: DatedCharge, units: number): Promise<number> {
    return units > 0 ? this.#plain.correct({ kind: 'release', key: this.#key, charge, units }) : 0
  }

  async #charge(cost: number): Promise<number> {
    return cost > 0 ? this.#plain.correct({ kind: 'charge', key: this.#key, cost }) : 0
  }

  /** Settles or extends a reservation on the two keys that reserve, asserts that the effects are equal, and returns the effect. */
  async #change(change: ReservationChange) {
    const [store, memory] = await this.#askReserving((reservations) => reservations.change(change))
    assert.deepEqual(store, memory)
    return store!
  }

  /** Asks both keys that reserve. */
  async #askReserving<T>(ask: (reservations: Reservations) => T | Promise<T>): Promise<readonly T[]> {
    return [await ask(this.#store.reservations!), await ask(this.#memory.reservations!)]
  }

  /** Changes all three keys, whose effects must be equal. */
  async #correctAll(act: (keyspace: Keyspace) => number | Promise<number>): Promise<void> {
    const [store, memory, plain] = [await act(this.#store), await act(this.#memory), await act(this.#plain)]
    assert.deepEqual([store, memory], [plain, plain])
  }

  /**
   * Asks all three keys and returns the answers of the two that reserve, which must be equal. The plain key's answer must have the
   * same reason, units and reset; its waits may be others, as it knows of no reservation that will end.
   */
  async #askAll(ask: (keyspace: Keyspace) => Answer | Promise<Answer>): Promise<readonly Answer[]> {
    const [store, memory, plain] = [await ask(this.#store), await ask(this.#memory), await ask(this.#plain)]
    assert.deepEqual(this.#comparable(store), this.#comparable(memory))
    const { reason, remaining, resetAt, used } = this.#comparable(plain)
    assert.deepEqual(
      { ...this.#comparable(store), reason, remaining, resetAt, used },
      this.#comparable(store),
    )
    this.#loseIfCleared(store)
    return [store, memory]
  }

  /** The fields of an answer on which keys must agree. Where it does not say what is used, that is what does not remain. */
  #comparable(answer: Answer) {
    const { now, at, reason, binding, remaining, resetAt, parts, held, nextEnd } = answer
    const used = this.policies.map(({ capacity }, i) =>
      answer.used ? (answer.used[i] ?? 0) : capacity - remainingUnder(answer, i),
    )
    return { now, at, reason, binding, remaining, resetAt, parts: parts && [...parts], held, nextEnd, used }
  }
}
