import { fixedWindow, gcra, leakyBucket, tokenBucket } from '../../src/index.js'
import { Tab } from './tab.js'
import { keyOf } from './timeline.js'

/*
 * A debt with four slots of 5 s, as two windows of 10 s last. Of 100 units one drains in a second. Every row is a call on
 * the same key: when it comes, what it does, and the units that are owed afterwards.
 */

const open = (slots?: number) =>
  new Tab(gcra({ limit: 10, window: '10s', burst: 100, ...(slots && { slots }) }))

it('gives back what has drained meanwhile, as far as later charges would not have been paid off by then', () => {
  const [plain, slotted] = [open(), open(4)]
  for (const tab of [plain, slotted]) {
    expect(tab.charge(1, 40)).toBe(40)
    expect(tab.charge(9, 20)).toBe(52)
  }
  // Of the first charge 11 of 40 may have drained since. The other 20, as if charged at 10 s, have left 18 at 12 s.
  expect(plain.release(12, 0, 40)).toBe(29)
  expect(slotted.release(12, 0, 40)).toBe(31)
  expect([plain.owed(), slotted.owed()]).toEqual([20, 18])
})

it('gives nothing back of a charge that is paid off in any case, where the plain rule gives nothing either', () => {
  const tab = open(4)
  tab.charge(0, 5)
  tab.charge(6, 3)
  expect(tab.release(8, 0, 5)).toBe(0)
  expect(tab.owed()).toBe(1)
})

it('begins anew once nothing is owed, so that an older charge is not looked for in the slots of later ones', () => {
  const tab = open(4)
  tab.charge(0, 2)
  tab.charge(3, 4)
  expect(tab.release(4, 0, 2)).toBe(0)
  expect(tab.owed()).toBe(3)
})

it('keeps the debt before the oldest slot, and charges that fell out of the slots', () => {
  const tab = open(4)
  expect(tab.charge(0, 100)).toBe(100)
  expect(tab.charge(12, 10)).toBe(98)
  expect(tab.charge(26, 10)).toBe(94)
  // Slots 2 to 5 are kept. The first charge counts from 5 s on, so 95 are owed at 10 s; 90 and the second charge at 15 s.
  expect(tab.release(40, 2, 10)).toBe(5)
  expect(tab.owed()).toBe(75)
})

it('gives back by the plain rule what is no longer kept apart', () => {
  const tab = open(4)
  tab.charge(0, 100)
  tab.charge(21, 10)
  expect(tab.release(22, 0, 100)).toBe(78)
  expect(tab.owed()).toBe(10)
})

it('does not look for a charge that fell out of the slots in the slot that took its place', () => {
  const tab = open(4)
  tab.charge(0, 15)
  tab.charge(12, 10)
  expect(tab.charge(21, 10)).toBe(14)
  expect(tab.release(21, 0, 15)).toBe(0)
  expect(tab.owed()).toBe(14)
  // Nor are the units of that slot taken out: of 13 owed at 22 s, 10 are of the third charge.
  expect(tab.release(22, 1, 10)).toBe(3)
  expect(tab.owed()).toBe(10)
})

it('does not look for a charge that was lost in a failover in an older slot, whose place it would have taken', () => {
  const tab = open(4)
  tab.charge(4.9, 40)
  tab.lose(20, 10)
  // By the plain rule: 5 of its 10 may have drained since.
  expect(tab.release(25, 1, 10)).toBe(5)
  expect(tab.owed()).toBe(15)
})

it('counts no more in a slot than calls can charge within it, however often units are given back as of now', () => {
  const tab = new Tab(gcra({ limit: 10, window: '10s', burst: 10, slots: 4 }))
  tab.charge(0, 10)
  for (let i = 0; i < 4; i++) {
    tab.correct('refund', 5)
    tab.correct('charge', 5)
  }
  tab.at(4.9)
  tab.correct('charge', 20)
  // 20 are owed at 4.9 s. The slot holds 25 units, 10 of them of the first charge, and 15 are left as if charged at 5 s.
  expect(tab.release(5.9, 0, 10)).toBeCloseTo(4.9)
})

it('empties the slots between two charges that lie far apart', () => {
  const tab = open(4)
  tab.charge(0, 100)
  tab.charge(2, 2)
  tab.charge(60, 10)
  tab.charge(61, 10)
  expect(tab.owed()).toBe(61)
  // Before the oldest slot, at 45 s: 102 as if charged at 5 s, less 40. The 10 that are left as if charged at 63 s.
  expect(tab.release(63, 2, 10)).toBe(7)
  expect(tab.owed()).toBe(52)
})

it('lets the debt before the oldest slot drain in the slots that nothing was charged in', () => {
  const tab = open(4)
  tab.charge(4.9, 100)
  tab.charge(60, 10)
  tab.charge(64.9, 10)
  // 100 at 5 s, 60 at 45 s, where the oldest slot begins, and 40 at 65 s. Then 10 are charged, and one drains.
  expect(tab.release(66, 1, 10)).toBeCloseTo(9.9)
  expect(tab.owed()).toBe(49)
})

it('follows the plain rule where another limit has drained the debt, until nothing is owed', () => {
  const [slow, fast] = [10, 20].map((limit) => gcra({ limit, window: '10s', burst: 100, slots: 4 }))
  const tab = new Tab(slow!, fast!)
  tab.charge(1, 40)
  tab.charge(9, 20, 1)
  expect(tab.release(12, 0, 40)).toBe(18)
  expect(tab.release(100, 1, 20)).toBe(0)
  tab.charge(101, 40, 1)
  tab.charge(109, 20, 1)
  expect(tab.release(112, 2, 40, 1)).toBe(22)
  // The slower limit keeps none of its charges apart, even where nothing is owed.
  tab.charge(201, 40)
  tab.charge(209, 20, 1)
  expect(tab.release(212, 4, 40, 1)).toBe(18)
})

it('does not count units that are given back as of now as charged', () => {
  const tab = open(4)
  tab.charge(1, 40)
  tab.charge(9, 20)
  tab.correct('refund', 1)
  expect(tab.owed()).toBe(51)
  // As without it, 18 are left of the second charge.
  expect(tab.release(12, 0, 40)).toBe(30)
  expect(tab.owed()).toBe(18)
})

it('gives back the units of a cancelled booking and of no other', () => {
  const tab = open(4)
  tab.charge(0, 100)
  tab.charge(10, 10)
  expect(tab.release(10, 1, 10)).toBe(10)
  expect(tab.owed()).toBe(90)
})

it('counts in milliseconds above an hour', () => {
  const tab = new Tab(gcra({ limit: 10, window: '2h', burst: 100, slots: 4 }))
  tab.charge(720, 40)
  tab.charge(6480, 20)
  expect(tab.release(8640, 0, 40)).toBe(31)
  expect(tab.owed()).toBe(18)
})

it('keeps the part of a tick that has passed where the debt computed anew is no smaller', () => {
  const tab = new Tab(gcra({ limit: 10, window: '2h', burst: 100, slots: 4 }))
  tab.charge(7200, 40)
  const paidAt = tab.paidAt()
  tab.charge(7200.0005, 20)
  expect(tab.release(7200.0005, 1, 20)).toBe(20)
  expect(tab.paidAt()).toBe(paidAt)
})

it('leaves the state of another policy alone where it begins anew', () => {
  const decide = keyOf([
    gcra({ limit: 10, window: '10s', slots: 4 }),
    fixedWindow({ limit: 10, window: '1h' }),
  ])
  const [first, second] = [4_000_000, 4_100_000].map((ms) => decide(ms, 4).remaining)
  expect([first, second]).toEqual([6, 2])
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
