import { strict as assert } from 'node:assert'
import { createSemaphore } from '@sluice/core'
import type { Permits, PermitStep, TicketState } from '@sluice/core/store'
import * as fc from 'fast-check'
import { law, type Trial } from '../law.js'
import { expectInLine, permitsOf, permitSteps } from '../line.js'
import type { Session } from '../session.js'
import { starts } from '../traffic.js'

const SECOND = 1_000_000
const HOUR_MS = 3_600_000

/**
 * Declares the laws of permits, by which a semaphore bounds how many run at once. A ticket is one call of a semaphore, by a
 * number: it holds a permit ('held'), waits for one ('waiting'), or is 'unknown'. `take` gets a permit now or not at all, `wait`
 * gets one or enters the queue, `poll` keeps the semaphore's tickets in the queue, `renew` keeps a permit for another lease, and
 * `release` ends a ticket; each returns its state. Laws of `lawOfRemotePermits` are for stores outside this process, where a holder may
 * die: a permit is free when its lease is over, tickets of a semaphore that was silent for a second are passed over, and a permit
 * granted to a silent ticket is free after two seconds.
 */
export function permits(trial: Trial): void {
  const often = { ...trial, runs: 10 * trial.runs }
  const inLine = 'are granted in line, each under the limit of its own semaphore'
  lawOfPermits(often, inLine, { steps: permitSteps }, (session, { steps }) => expectInLine(session, steps))
  permitsAreNotPassedOnAboveALimit(trial)
  lawOfPermits(trial, 'are kept apart by name and key', {}, async (session) => {
    const [name, other, key] = [session.freshKey(), session.freshKey(), session.freshKey()]
    const semaphores = [new SemaphoreOfKey(session, name, key), new SemaphoreOfKey(session, other, key)]
    semaphores.push(new SemaphoreOfKey(session, name, session.freshKey()))
    for (const semaphore of semaphores) assert.equal(await semaphore.take(1), 'held')
    for (const semaphore of semaphores) assert.equal(await semaphore.take(2), 'unknown')
  })
  permitsStayWithTheirTicketsInThisProcess(trial)
  permitsAreFreeWhenTheirLeaseIsOver(trial)
  anEndedLeaseMayBeRenewedUntilAnotherPolls(trial)
  ticketsOfASilentSemaphoreArePassedOver(trial)
  aPermitOfASilentTicketIsFreeAfterTwoSeconds(trial)
  aPollKeepsAllTicketsOfItsSemaphore(trial)
}

/**
 * A law: two semaphores share the permits of a key, `wide` with a larger limit than `narrow`. A ticket (a call, by number) that waits under
 * the narrow limit gets no permit while as many are held as that, and holds up all tickets behind it.
 */
function permitsAreNotPassedOnAboveALimit(trial: Trial): void {
  const limits = { narrow: fc.integer({ min: 1, max: 5 }), wider: fc.integer({ min: 1, max: 5 }) }
  lawOfPermits(
    trial,
    'are not passed on to a semaphore above its own limit',
    limits,
    async (session, drawn) => {
      const [wide, narrow] = semaphoresOfOneKey(session, 2) as [SemaphoreOfKey, SemaphoreOfKey]
      const limit = drawn.narrow + drawn.wider
      for (let ticket = 1; ticket <= limit; ticket++)
        assert.deepEqual(await wide.ask('take', [ticket], limit), ['held'])
      assert.deepEqual(await narrow.ask('wait', [1], limit), ['waiting'])
      assert.deepEqual(await narrow.ask('poll', [1], drawn.narrow), ['waiting']) // its limit was lowered
      for (let ticket = 1; ticket <= drawn.wider + 1; ticket++) {
        assert.deepEqual(await wide.ask('wait', [limit + ticket], limit), ['waiting']) // also while permits are free
        assert.deepEqual(await narrow.ask('poll', [1], drawn.narrow), ['waiting'])
        await wide.release(ticket)
      }
      assert.deepEqual(await narrow.ask('poll', [1], drawn.narrow), ['held'])
      const freed = Array.from({ length: drawn.wider + 1 }, (_, i) => limit + 1 + i)
      const states = freed.map((_, i) => (i < drawn.wider ? 'held' : 'waiting'))
      assert.deepEqual(await wide.ask('poll', freed, limit), states)
    },
  )
}

/**
 * A law: in a store of this process a permit is not lost by time, however long its lease. When it is released, it goes to the next
 * waiting ticket (a call, by number), and its semaphore is told (`listen`).
 */
function permitsStayWithTheirTicketsInThisProcess(trial: Trial): void {
  lawOfPermits(
    trial,
    'stay with their tickets in this process until they are released',
    {},
    async (session) => {
      if (!session.store.local) return
      const [holder, next] = semaphoresOfOneKey(session, 2) as [SemaphoreOfKey, SemaphoreOfKey]
      const granted: number[] = []
      next.permits.listen((ticket) => granted.push(ticket))
      assert.deepEqual([await holder.take(1), await next.wait(1)], ['held', 'waiting'])
      session.now += 86_400 * SECOND
      assert.deepEqual([await holder.renew(1), await next.poll(1), granted], ['held', 'waiting', []])
      await holder.release(1)
      assert.deepEqual([granted, await next.poll(1)], [[1], 'held'])
    },
  )
}

/**
 * A law: a permit of a store elsewhere ends with the lease of its own semaphore, to the microsecond, unless it is renewed: another
 * semaphore of the key can take it then. Leases are drawn, in milliseconds.
 */
function permitsAreFreeWhenTheirLeaseIsOver(trial: Trial): void {
  const leases = { lease: fc.integer({ min: 1000, max: HOUR_MS }), isRenewed: fc.boolean() }
  lawOfRemotePermits(
    trial,
    'are free exactly when their own lease is over',
    leases,
    async (session, drawn) => {
      const key = session.freshKey()
      // The other semaphore has a longer lease, which must not count for the permit of the first.
      const [holder, other] = [drawn.lease, HOUR_MS].map(
        (lease) => new SemaphoreOfKey(session, key, key, lease),
      )
      assert.equal(await holder!.take(1), 'held')
      if (drawn.isRenewed) {
        session.now += drawn.lease * 1000 - 1
        assert.equal(await holder!.renew(1), 'held')
      }
      session.now += drawn.lease * 1000 - 1
      assert.equal(await other!.take(1), 'unknown')
      session.now += 1
      assert.equal(await other!.take(2), 'held')
      assert.deepEqual([await holder!.renew(1), await holder!.poll(1)], ['unknown', 'unknown'])
    },
  )
}

/**
 * A law: a permit whose lease is over goes to its holder if he renews it before the waiting ticket polls, and otherwise to that
 * ticket.
 */
function anEndedLeaseMayBeRenewedUntilAnotherPolls(trial: Trial): void {
  lawOfRemotePermits(
    trial,
    'are renewed before any is granted',
    { comesFirst: fc.boolean() },
    async (session, drawn) => {
      const key = session.freshKey()
      const [holder, next] = [1000, HOUR_MS].map((lease) => new SemaphoreOfKey(session, key, key, lease))
      assert.deepEqual([await holder!.take(1), await next!.wait(1)], ['held', 'waiting'])
      session.now += SECOND - 1
      assert.equal(await next!.poll(1), 'waiting')
      session.now += 1 // the lease is over
      if (drawn.comesFirst) {
        assert.deepEqual([await holder!.renew(1), await next!.poll(1)], ['held', 'waiting'])
      } else {
        assert.deepEqual([await next!.poll(1), await holder!.renew(1)], ['held', 'unknown'])
      }
    },
  )
}

/**
 * A law: a waiting ticket (a call, by number) whose semaphore has not polled for a second loses its place in the queue, and not a
 * microsecond before. Its process may have died. `passed` is a drawn part of that second, in microseconds.
 */
function ticketsOfASilentSemaphoreArePassedOver(trial: Trial): void {
  const silence = {
    passed: fc.integer({ min: 1, max: SECOND - 1 }),
    isDead: fc.boolean(),
    waits: fc.boolean(),
  }
  lawOfRemotePermits(
    trial,
    'pass over tickets whose semaphore was silent for a second',
    silence,
    async (session, drawn) => {
      const [holder, silent, next] = semaphoresOfOneKey(session, 3) as [
        SemaphoreOfKey,
        SemaphoreOfKey,
        SemaphoreOfKey,
      ]
      assert.deepEqual([await holder.take(1), await silent.wait(1)], ['held', 'waiting'])
      // A microsecond less than a second of silence does not yet count.
      const until = session.now + SECOND - (drawn.isDead ? 0 : 1)
      session.now += drawn.passed
      if (drawn.waits) assert.equal(await next.wait(1), 'waiting')
      session.now = until
      await holder.release(1)
      const state = drawn.waits ? await next.poll(1) : await next.take(1)
      if (drawn.isDead) assert.deepEqual([state, await silent.poll(1)], ['held', 'unknown'])
      else assert.deepEqual([state, await silent.poll(1)], [drawn.waits ? 'waiting' : 'unknown', 'held'])
    },
  )
}

/**
 * A law: a permit that was granted to a waiting ticket whose semaphore never notices (`silent`) is free again after two seconds, for the
 * next ticket.
 */
function aPermitOfASilentTicketIsFreeAfterTwoSeconds(trial: Trial): void {
  lawOfRemotePermits(
    trial,
    'are free again two seconds after a silent ticket got one',
    {},
    async (session) => {
      const [holder, silent, next] = semaphoresOfOneKey(session, 3) as [
        SemaphoreOfKey,
        SemaphoreOfKey,
        SemaphoreOfKey,
      ]
      await holder.take(1)
      assert.deepEqual([await silent.wait(1), await next.wait(1)], ['waiting', 'waiting'])
      await holder.release(1)
      // The silent ticket gets the permit at once, so it is free two seconds after the release, that is after the loop and one
      // microsecond.
      for (const passed of [SECOND - 1, SECOND - 1, 1]) {
        session.now += passed
        assert.equal(await next.poll(1), 'waiting')
      }
      session.now += 1
      assert.deepEqual([await next.poll(1), await silent.poll(1)], ['held', 'unknown'])
    },
  )
}

/**
 * A law: a semaphore that polls for one of its waiting tickets (calls, by number) keeps the places of all of them in the queue.  */
function aPollKeepsAllTicketsOfItsSemaphore(trial: Trial): void {
  lawOfRemotePermits(trial, 'wait for all tickets of a semaphore while it polls one', {}, async (session) => {
    const [holder, first, last] = semaphoresOfOneKey(session, 3) as [
      SemaphoreOfKey,
      SemaphoreOfKey,
      SemaphoreOfKey,
    ]
    await holder.take(1)
    for (const ticket of [1, 2, 3]) assert.equal(await first.wait(ticket), 'waiting')
    assert.equal(await last.wait(1), 'waiting')
    for (let i = 0; i < 3; i++) {
      session.now += SECOND - 1
      assert.deepEqual([await first.poll(1), await last.poll(1)], ['waiting', 'waiting'])
    }
    await holder.release(1)
    for (const ticket of [1, 2, 3]) {
      assert.deepEqual([await first.poll(ticket), await last.poll(1)], ['held', 'waiting'])
      await first.release(ticket)
    }
    assert.equal(await last.poll(1), 'held')
  })
}

/** A semaphore of limit 1, if no other is said, and its tickets of one key. */
class SemaphoreOfKey {
  readonly permits: Permits

  /**
   * A semaphore of this name that asks for permits of one key. Its leases last `leaseMs` milliseconds, an hour by default, so
   * that no permit ends by itself in a law that does not wait for that.
   */
  constructor(
    session: Session,
    name: string,
    readonly key: string,
    leaseMs = HOUR_MS,
  ) {
    this.permits = permitsOf(session.store, name, leaseMs)
  }

  readonly take = (ticket: number): Promise<TicketState> => this.#askOne('take', ticket)
  readonly wait = (ticket: number): Promise<TicketState> => this.#askOne('wait', ticket)
  readonly poll = (ticket: number): Promise<TicketState> => this.#askOne('poll', ticket)
  readonly renew = (ticket: number): Promise<TicketState> => this.#askOne('renew', ticket)
  readonly release = (ticket: number): Promise<TicketState> => this.#askOne('release', ticket)

  /** Takes one step for several tickets under a limit. Returns their states after it, in the same order. */
  async ask(step: PermitStep, tickets: readonly number[], limit: number): Promise<readonly TicketState[]> {
    return this.permits.ask(step, this.key, tickets, limit)
  }

  /** Takes one step for one ticket under a limit of 1. Returns its state after it. */
  async #askOne(step: PermitStep, ticket: number): Promise<TicketState> {
    return (await this.ask(step, [ticket], 1))[0]!
  }
}

/** Makes `size` semaphores of one name for one new key, as so many processes have them: they share its permits. */
function semaphoresOfOneKey(session: Session, size: number): readonly SemaphoreOfKey[] {
  const key = session.freshKey()
  return Array.from({ length: size }, () => new SemaphoreOfKey(session, key, key))
}

type Drawing<T> = { readonly [K in keyof T]: fc.Arbitrary<T[K]> }

/**
 * Declares a law of permits: `check` gets a session and the drawn values, one for each field of `drawing`. A store has to obey
 * the law if it keeps permits itself (`permits`), or if it is in this process (`local`), as semaphores then keep the permits
 * beside it. Of any other store the law asserts instead that no semaphore can be made on it.
 */
function lawOfPermits<T extends object>(
  trial: Trial,
  name: string,
  drawing: Drawing<T>,
  check: (session: Session, drawn: T) => Promise<void>,
): void {
  const drawn = fc.record({ start: starts, drawn: fc.record(drawing) as fc.Arbitrary<T> })
  law(trial, name, drawn, async (session, value) => {
    const { store } = session
    if (store.local || store.permits) return check(session, value.drawn)
    assert.throws(() => createSemaphore({ name: 'conformance', limit: 1, store }), { code: 'INVALID_OPTION' })
  })
}

/**
 * Declares a law of permits, as `lawOfPermits` does, that is checked only on stores outside this process. Such laws say what becomes
 * of the permits of a process that has died, which such a store notices by its silence alone. In a store of this process nothing
 * outlives the process.
 */
function lawOfRemotePermits<T extends object>(
  ...[trial, name, drawing, check]: Parameters<typeof lawOfPermits<T>>
): void {
  lawOfPermits(trial, name, drawing, async (session, drawn) => {
    if (!session.store.local) await check(session, drawn)
  })
}
