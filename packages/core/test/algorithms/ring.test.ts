import { Ring } from '../../src/algorithms/contract/state.js'

describe('a ring', () => {
  const ringOf = (...instants: number[]) => {
    const ring = new Ring()
    for (const instant of instants) ring.push(instant, 1)
    return ring
  }
  const entries = (ring: Ring) => Array.from({ length: ring.size }, (_, i) => ring.at(i))

  it('has its entries by age, the newest first, and none beyond the oldest', () => {
    const ring = ringOf(1, 2, 3, 4, 5)
    expect(entries(ring)).toEqual([5, 4, 3, 2, 1])
    expect(ring.at(5)).toBe(-Infinity)
  })

  it.each([
    [0, 2, [4, 3, 2, 1]],
    [1, 2, [6, 3, 2, 1]],
    [3, 3, [6, 5, 4]],
    [2, 0, [6, 5, 4, 3, 2, 1]],
  ])('closes the gap of entries removed behind the newest %d: %d of them', (newer, n, left) => {
    const ring = ringOf(1, 2, 3, 4, 5, 6)
    ring.remove(newer, n)
    expect(entries(ring)).toEqual(left)
    ring.push(7, 1)
    expect(entries(ring)).toEqual([7, ...left])
  })

  it('removes entries across the end of its slots', () => {
    const ring = ringOf(1, 2, 3)
    ring.keep(1)
    ring.push(4, 3)
    ring.remove(2, 1)
    expect(entries(ring)).toEqual([4, 4, 3])
  })

  it('doubles its slots when they are full, and not before', () => {
    expect(ringOf(1).mark().slots).toHaveLength(4)
    expect(ringOf(1, 2, 3, 4).mark().slots).toEqual([1, 2, 3, 4])
    const ring = new Ring()
    ring.push(1, 4)
    expect(ring.mark().slots).toHaveLength(4)
    ring.push(2, 1)
    const none = -Infinity
    expect(ring.mark().slots).toEqual([1, 1, 1, 1, 2, none, none, none])
  })

  it('records what is overwritten until it is sealed', () => {
    const ring = ringOf(1, 2, 3, 4)
    const mark = ring.mark()
    ring.keep(1)
    ring.push(5, 1)
    ring.seal()
    ring.push(6, 1)
    expect(mark.overwritten).toEqual([1])
  })

  it('restores entries that were dropped and overwritten', () => {
    const ring = ringOf(1, 2, 3, 4)
    const mark = ring.mark()
    ring.keep(1)
    ring.push(5, 2)
    ring.seal()
    expect(entries(ring)).toEqual([5, 5, 4])
    ring.restore(mark)
    expect(entries(ring)).toEqual([4, 3, 2, 1])
  })

  it('restores entries from before it grew', () => {
    const ring = ringOf(1, 2, 3, 4)
    const mark = ring.mark()
    ring.push(5, 2)
    ring.seal()
    ring.restore(mark)
    expect(entries(ring)).toEqual([4, 3, 2, 1])
  })

  it('restores one mark after another, where it grew in between', () => {
    const ring = ringOf(1, 2, 3, 4)
    const first = ring.mark()
    ring.keep(3)
    ring.push(5, 1)
    ring.seal()
    const second = ring.mark()
    ring.push(6, 1)
    ring.seal()
    ring.restore(second)
    expect(entries(ring)).toEqual([5, 4, 3, 2])
    ring.restore(first)
    expect(entries(ring)).toEqual([4, 3, 2, 1])
  })
})
