import fc from 'fast-check'
import { ExpiringMap } from '../../src/values/expiring-map.js'

const MOST = 20
const LIFE = 100

describe('an expiring map', () => {
  it('has no more entries than its bound, whatever keys come when', () => {
    const step = fc.record({ key: fc.nat(60), passes: fc.nat(2), isDeleted: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 200 }), (steps) => {
        const map = new ExpiringMap<number>(MOST, LIFE)
        let now = 0
        for (const { key, passes, isDeleted } of steps) {
          now += passes
          if (isDeleted) map.delete(`${key}`)
          else map.set(`${key}`, now, now)
          const held = Array.from({ length: 61 }, (_, each) => map.get(`${each}`)).filter(
            (at) => at !== undefined,
          )
          expect(held.length).toBeLessThanOrEqual(MOST)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('keeps an entry for its life, and for no more than twice as long where others come', () => {
    const map = new ExpiringMap<string>(MOST, LIFE)
    map.set('a', 'first', 0)
    map.set('b', 'later', LIFE)
    expect(map.get('a')).toBe('first')
    map.set('c', 'last', 2 * LIFE)
    expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 'later', 'last'])
  })
})
