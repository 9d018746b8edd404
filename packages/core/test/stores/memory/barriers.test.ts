import { Barriers } from '../../../src/stores/memory/barriers.js'

describe('a block or hold', () => {
  it('is found until it is over, by whichever ends later', () => {
    const barriers = new Barriers()
    barriers.block(1, 100)
    barriers.hold(1, 200)
    expect(barriers.of(1, 99)).toEqual({ blockedUntil: 100, heldUntil: 200 })
    expect(barriers.of(1, 199)).toEqual({ blockedUntil: 100, heldUntil: 200 })
    expect(barriers.of(1, 200)).toBeUndefined()
    expect(barriers.of(2, 0)).toBeUndefined()
  })

  it('that is over is forgotten, and may be followed by another', () => {
    const barriers = new Barriers()
    barriers.hold(1, 100)
    expect(barriers.of(1, 100)).toBeUndefined()
    expect(barriers.lastOf(1)).toEqual({ blockedUntil: 0, heldUntil: 0 })
    barriers.block(1, 300)
    expect(barriers.of(1, 200)).toEqual({ blockedUntil: 300, heldUntil: 0 })
  })

  it('of other rows stands when one is over or cleared', () => {
    const barriers = new Barriers()
    for (const row of [1, 2, 3]) barriers.block(row, 100 * row)
    expect(barriers.of(1, 100)).toBeUndefined()
    barriers.clear(1)
    barriers.clear(2)
    barriers.clear(2)
    expect(barriers.of(3, 100)).toMatchObject({ blockedUntil: 300 })
    expect(barriers.size).toBe(1)
  })
})
