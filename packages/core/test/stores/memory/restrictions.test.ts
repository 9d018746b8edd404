import { Restrictions } from '../../../src/stores/memory/restrictions.js'

/** The block or hold of a row at an instant. */
function at(restrictions: Restrictions, row: number, now: number) {
  return restrictions.has(row, now) ? restrictions.lastOf(row) : undefined
}

describe('a block or hold', () => {
  it('is found until it is over, by whichever ends later', () => {
    const restrictions = new Restrictions()
    restrictions.block(1, 0, 100, false)
    restrictions.hold(1, 200)
    expect(at(restrictions, 1, 99)).toEqual({ blockedUntil: 100, heldUntil: 200, isBan: true })
    expect(at(restrictions, 1, 199)).toEqual({ blockedUntil: 100, heldUntil: 200, isBan: true })
    expect(at(restrictions, 1, 200)).toBeUndefined()
    expect(at(restrictions, 2, 0)).toBeUndefined()
  })

  it('that is over is forgotten, and may be followed by another', () => {
    const restrictions = new Restrictions()
    restrictions.hold(1, 100)
    expect(at(restrictions, 1, 100)).toBeUndefined()
    expect(restrictions.lastOf(1)).toEqual({ blockedUntil: 0, heldUntil: 0, isBan: false })
    restrictions.block(1, 200, 300, true)
    expect(at(restrictions, 1, 200)).toEqual({ blockedUntil: 300, heldUntil: 0, isBan: false })
  })

  it('of other rows stands when one is over or cleared', () => {
    const restrictions = new Restrictions()
    for (const row of [1, 2, 3]) restrictions.block(row, 0, 100 * row, false)
    expect(at(restrictions, 1, 100)).toBeUndefined()
    restrictions.clear(1)
    restrictions.clear(2)
    restrictions.clear(2)
    expect(at(restrictions, 3, 100)).toMatchObject({ blockedUntil: 300 })
    expect(restrictions.size).toBe(1)
  })

  it("of a penalty never shortens another one, and leaves an operator's one until it ends", () => {
    const restrictions = new Restrictions()
    restrictions.block(1, 0, 100, false)
    restrictions.block(1, 50, 90, true)
    expect(at(restrictions, 1, 50)).toEqual({ blockedUntil: 100, heldUntil: 0, isBan: true })
    restrictions.block(1, 50, 200, true)
    expect(at(restrictions, 1, 50)).toEqual({ blockedUntil: 200, heldUntil: 0, isBan: true })
    expect(restrictions.bans).toBe(1)
    restrictions.block(1, 200, 300, true)
    expect(at(restrictions, 1, 200)).toEqual({ blockedUntil: 300, heldUntil: 0, isBan: false })
    expect(restrictions.bans).toBe(0)
  })
})
