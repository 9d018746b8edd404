import * as fc from 'fast-check'
import { findShapes, type Scenario, scenarios } from '../../src/conformance/index.js'

/** Random sequences, the same ones in each run. */
function drawn(hasPenalties: boolean): Scenario[] {
  const shape = fc.constantFrom(...findShapes().shapes)
  return fc.sample(scenarios(fc.tuple(shape), hasPenalties), { numRuns: 1000, seed: 1 })
}

describe('random sequences for a store', () => {
  it('have a penalty for some calls, for none and for all of them', () => {
    const counts = drawn(true).map(({ penalties }) => penalties.filter(Boolean).length)
    for (const count of [0, 1, 2]) expect(counts.filter((each) => each === count).length).toBeGreaterThan(100)
  })

  it('have none for a store without penalties', () => {
    expect(
      drawn(false)
        .flatMap(({ penalties }) => penalties)
        .filter(Boolean),
    ).toEqual([])
  })

  it('do everything that a limiter can do', () => {
    const kinds = new Set(drawn(true).flatMap(({ steps }) => steps.map(({ kind }) => kind)))
    const all = ['consume', 'peek', 'book', 'cancel', 'refund', 'release', 'charge', 'hold', 'block', 'reset']
    expect([...kinds].toSorted()).toEqual(all.toSorted())
  })
})
