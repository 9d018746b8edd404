import { Restrictions } from '../../../src/stores/memory/restrictions.js'

describe('a block or hold', () => {
  it('is found until it is over, by whichever ends later', () => {
    const restrictions = new Restrictions()
    restrictions.block(1, 100)
    restrictions.hold(1, 200)
    expect(restrictions.get(1, 99)).toEqual({ blockedUntil: 100, heldUntil: 200 })
    expect(restrictions.get(1, 199)).toEqual({ blockedUntil: 100, heldUntil: 200 })
    expect(restrictions.get(1, 200)).toBeUndefined()
    expect(restrictions.get(2, 0)).toBeUndefined()
  })

  it('that is over is forgotten, and may be followed by another', () => {
    const restrictions = new Restrictions()
    restrictions.hold(1, 100)
    expect(restrictions.get(1, 100)).toBeUndefined()
    expect(restrictions.lastOf(1)).toEqual({ blockedUntil: 0, heldUntil: 0 })
    restrictions.block(1, 300)
    expect(restrictions.get(1, 200)).toEqual({ blockedUntil: 300, heldUntil: 0 })
  })

  it('of other rows stands when one is over or cleared', () => {
    const restrictions = new Restrictions()
    for (const row of [1, 2, 3]) restrictions.block(row, 100 * row)
    expect(restrictions.get(1, 100)).toBeUndefined()
    restrictions.clear(1)
    restrictions.clear(2)
    restrictions.clear(2)
    expect(restrictions.get(3, 100)).toMatchObject({ blockedUntil: 300 })
    expect(restrictions.size).toBe(1)
  })
})
