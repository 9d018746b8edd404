import { gcra, leakyBucket, memoryStore, type Policy, tokenBucket } from '../../src/index.js'
import type { DatedCharge, Keyspace } from '../../src/stores/store.js'

/*
 * A debt with four slots of 5 s, as two windows of 10 s last. Of 100 units one drains in a second. Every row is a call on
 * the same key: when it comes, what it does, and the units that are owed afterwards.
 */

const second = 1_000_000

class Key {
  now = 0
  readonly #keyspaces: readonly Keyspace[]
  readonly #charges: DatedCharge[] = []
  readonly #capacity: number

  constructor(...policies: readonly Policy[]) {
    const store = memoryStore({ clock: () => this.now })
    this.#capacity = policies[0]!.capacity
    this.#keyspaces = policies.map((policy) => store.keyspace('slots', [policy], () => {}))
  }

  /** Units owed after a charge, in whole units, rounded up. */
  charge(seconds: number, cost: number, tier = 0): number {
    this.now = seconds * second
    const { at, now, reason } = this.#keyspaces[tier]!.decide('consume', 'k', cost, 0) as never
    expect(reason).toBeUndefined()
    this.#charges.push({ at, cost, decidedAt: now })
    return this.owed(tier)
  }

  /** The units that took effect when units of the n-th charge were given back. */
  release(seconds: number, n: number, units: number, tier = 0): number {
    this.now = seconds * second
    const charge = this.#charges[n]!
    return this.#keyspaces[tier]!.correct({ kind: 'release', key: 'k', charge, units }) as number
  }

  /** Units as of now. */
  correct(kind: 'charge' | 'refund', cost: number): void {
    this.#keyspaces[0]!.correct({ kind, key: 'k', cost })
  }

  /** A charge that the state does not hold, as a replica that took over had not heard of it. */
  lose(seconds: number, cost: number): void {
    this.#charges.push({ at: seconds * second, cost, decidedAt: seconds * second })
  }

  owed(tier = 0): number {
    const { remaining } = this.#keyspaces[tier]!.decide('peek', 'k', 0, 0) as { remaining: number }
    return this.#capacity - remaining
  }
}

const open = (slots?: number) =>
  new Key(gcra({ limit: 10, window: '10s', burst: 100, ...(slots && { slots }) }))

it('gives back what has drained meanwhile, as far as later charges would not have been paid off by then', () => {
  const [plain, slotted] = [open(), open(4)]
  for (const key of [plain, slotted]) {
    expect(key.charge(1, 40)).toBe(40)
    expect(key.charge(9, 20)).toBe(52)
  }
  // Of the first charge 11 of 40 may have drained since. The other 20, as if charged at 10 s, have left 18 at 12 s.
  expect(plain.release(12, 0, 40)).toBe(29)
  expect(slotted.release(12, 0, 40)).toBe(31)
  expect([plain.owed(), slotted.owed()]).toEqual([20, 18])
})

it('gives nothing back of a charge that is paid off in any case, where the plain rule gives nothing either', () => {
  const key = open(4)
  key.charge(0, 5)
  key.charge(6, 3)
  expect(key.release(8, 0, 5)).toBe(0)
  expect(key.owed()).toBe(1)
})

it('begins anew once nothing is owed, so that an older charge is not sought in the slots of later ones', () => {
  const key = open(4)
  key.charge(0, 2)
  key.charge(3, 4)
  expect(key.release(4, 0, 2)).toBe(0)
  expect(key.owed()).toBe(3)
})

it('keeps the debt before the oldest slot, and charges that fell out of the slots', () => {
  const key = open(4)
  expect(key.charge(0, 100)).toBe(100)
  expect(key.charge(12, 10)).toBe(98)
  expect(key.charge(26, 10)).toBe(94)
  // Slots 2 to 5 are kept. The first charge counts from 5 s on, so 95 are owed at 10 s; 90 and the second charge at 15 s.
  expect(key.release(40, 2, 10)).toBe(5)
  expect(key.owed()).toBe(75)
})

it('gives back by the plain rule what is no longer kept apart', () => {
  const key = open(4)
  key.charge(0, 100)
  key.charge(21, 10)
  expect(key.release(22, 0, 100)).toBe(78)
  expect(key.owed()).toBe(10)
})

it('does not seek a charge that fell out of the slots in the slot that took its place', () => {
  const key = open(4)
  key.charge(0, 15)
  key.charge(12, 10)
  expect(key.charge(21, 10)).toBe(14)
  expect(key.release(21, 0, 15)).toBe(0)
  expect(key.owed()).toBe(14)
  // Nor are the units of that slot taken out: of 13 owed at 22 s, 10 are of the third charge.
  expect(key.release(22, 1, 10)).toBe(3)
  expect(key.owed()).toBe(10)
})

it('does not seek a charge that was lost in a failover in an older slot, whose place it would have taken', () => {
  const key = open(4)
  key.charge(4.9, 40)
  key.lose(20, 10)
  // By the plain rule: 5 of its 10 may have drained since.
  expect(key.release(25, 1, 10)).toBe(5)
  expect(key.owed()).toBe(15)
})

it('counts no more in a slot than calls can charge within it, however often units are given back as of now', () => {
  const key = new Key(gcra({ limit: 10, window: '10s', burst: 10, slots: 4 }))
  key.charge(0, 10)
  for (let i = 0; i < 4; i++) {
    key.correct('refund', 5)
    key.correct('charge', 5)
  }
  key.now = 4.9 * second
  key.correct('charge', 20)
  // 20 are owed at 4.9 s. The slot holds 25 units, 10 of them of the first charge, and 15 are left as if charged at 5 s.
  expect(key.release(5.9, 0, 10)).toBeCloseTo(4.9)
})

it('empties the slots between two charges that lie far apart', () => {
  const key = open(4)
  key.charge(0, 100)
  key.charge(2, 2)
  key.charge(60, 10)
  key.charge(61, 10)
  expect(key.owed()).toBe(61)
  // Before the oldest slot, at 45 s: 102 as if charged at 5 s, less 40. The 10 that are left as if charged at 63 s.
  expect(key.release(63, 2, 10)).toBe(7)
  expect(key.owed()).toBe(52)
})

it('lets the debt before the oldest slot drain in the slots that nothing was charged in', () => {
  const key = open(4)
  key.charge(4.9, 100)
  key.charge(60, 10)
  key.charge(64.9, 10)
  // 100 at 5 s, 60 at 45 s, where the oldest slot begins, and 40 at 65 s. Then 10 are charged, and one drains.
  expect(key.release(66, 1, 10)).toBeCloseTo(9.9)
  expect(key.owed()).toBe(49)
})

it('follows the plain rule where another limit has drained the debt, until nothing is owed', () => {
  const [slow, fast] = [10, 20].map((limit) => gcra({ limit, window: '10s', burst: 100, slots: 4 }))
  const key = new Key(slow!, fast!)
  key.charge(1, 40)
  key.charge(9, 20, 1)
  expect(key.release(12, 0, 40)).toBe(18)
  expect(key.release(100, 1, 20)).toBe(0)
  key.charge(101, 40, 1)
  key.charge(109, 20, 1)
  expect(key.release(112, 2, 40, 1)).toBe(22)
  // The slower limit keeps none of its charges apart, even where nothing is owed.
  key.charge(201, 40)
  key.charge(209, 20, 1)
  expect(key.release(212, 4, 40, 1)).toBe(18)
})

it('does not count units that are given back as of now as charged', () => {
  const key = open(4)
  key.charge(1, 40)
  key.charge(9, 20)
  key.correct('refund', 1)
  expect(key.owed()).toBe(51)
  // As without it, 18 are left of the second charge.
  expect(key.release(12, 0, 40)).toBe(30)
  expect(key.owed()).toBe(18)
})

it('has a place that is left pay for itself alone', () => {
  const key = open(4)
  key.charge(0, 100)
  key.charge(10, 10)
  expect(key.release(10, 1, 10)).toBe(10)
  expect(key.owed()).toBe(90)
})

describe('slots', () => {
  const numbers = { limit: 10, window: '1m' } as const

  it('are an option of the debt family, which has the same state then', () => {
    const shapes = [gcra, leakyBucket, tokenBucket].map((factory) => factory({ ...numbers, slots: 16 }).shape)
    expect(new Set(shapes)).toEqual(new Set(['gcra-slots/60000/16']))
  })

  it.each([4, 64])('may be %p', (slots) => {
    expect(gcra({ ...numbers, slots }).buckets).toBe(slots)
  })

  it.each([3, 65, 4.5, NaN, '8'])('may not be %p', (slots) => {
    expect(() => gcra({ ...numbers, slots: slots as number })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('from 4 to 64') }),
    )
  })

  it('are not for interval refill, which counts whole tokens', () => {
    expect(() => tokenBucket({ ...numbers, refill: 'interval', slots: 4 })).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining("refill: 'greedy'"),
      }),
    )
  })

  it('bound capacity and limit so that their sums stay exact', () => {
    const largest = (limit: number) => () => gcra({ limit, window: '1h', slots: 16 })
    expect(largest(500_000)).not.toThrow()
    expect(largest(600_000)).toThrow(
      expect.objectContaining({
        code: 'CAPACITY_TOO_LARGE',
        message: expect.stringMatching(/^burst and limit .* got 600000 and 600000: use a shorter window/),
      }),
    )
  })

  it('may hold sums of 2^52, and none above', () => {
    const of = (burst: number) => () => gcra({ limit: 4, window: 2 ** 22, burst, slots: 4 })
    expect(of(2 ** 29 - 1)).not.toThrow()
    expect(of(2 ** 29)).toThrow(expect.objectContaining({ code: 'CAPACITY_TOO_LARGE' }))
  })
})
