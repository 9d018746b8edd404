import { setImmediate } from 'node:timers/promises'
import { FakeClock } from '@sluice/testing'
import { collect } from '@sluice/harness/figures'
import { createLimiter, type Decision, gcra, memoryStore, PolicyError } from '../../../src/index.js'

const list = (seconds: number) => [gcra({ limit: 1, window: `${seconds}s` })]

function open(maxShapes: number, maxKeys = 100) {
  const clock = new FakeClock()
  const store = memoryStore({ maxShapes, maxKeys, clock: clock.now })
  const limiter = createLimiter({ name: 'shapes', store, policies: list(1) })
  const codes: string[] = []
  limiter.on('warning', ({ code }) => codes.push(code))
  return { clock, limiter, codes }
}

describe('shapes in a memory store', () => {
  it('are forgotten with all that was made for them, beyond the bound', async () => {
    const { limiter } = open(100)
    const shapes = Array.from({ length: 5000 }, (_, i) => {
      const policies = list(i + 1)
      void limiter.decide('k', { policies })
      return new WeakRef(policies[0]!)
    })
    await setImmediate() // a WeakRef keeps what it names until the end of this turn
    collect()
    // The store keeps those with keys, and the limiter the latest, under which a ban of any key has to be written.
    expect(shapes.filter((each) => each.deref()).length).toBeLessThanOrEqual(210)
  })

  it('are reported once when they reach the bound', async () => {
    const { limiter, codes } = open(10)
    for (let i = 1; i <= 10; i++) void limiter.decide('k', { policies: list(i), cost: 0 })
    await Promise.resolve()
    expect(codes).toEqual([])
    for (let i = 11; i <= 30; i++) void limiter.decide('k', { policies: list(i), cost: 0 })
    await Promise.resolve()
    expect(codes).toEqual(['SHAPES_FULL'])
  })

  it('are kept while they hold a key, which counts as before', () => {
    const { limiter } = open(10, 1000)
    const lists = Array.from({ length: 50 }, (_, i) => list(3600 + i))
    for (const policies of lists) void limiter.decide('k', { policies })
    const again = lists.map((_, i) => limiter.decide('k', { policies: list(3600 + i) }) as Decision)
    expect(again.every(({ allowed }) => !allowed)).toBe(true)
  })

  it('can be more than the bound where each holds a key', () => {
    const { limiter } = open(1)
    const lists = [list(3600), list(3601)]
    const calls = [...lists, ...lists].map((policies) => limiter.decide('k', { policies }) as Decision)
    expect(calls.map(({ allowed }) => allowed)).toEqual([true, true, false, false])
  })

  it('that were let go are one state again when two lists of them come back', () => {
    const { limiter } = open(10)
    const [one, other] = [list(3600), list(3600)]
    void limiter.decide('k', { policies: one, cost: 0 })
    for (let i = 1; i <= 100; i++) void limiter.decide('k', { policies: list(i), cost: 0 })
    const first = limiter.decide('k', { policies: other })
    const second = limiter.decide('k', { policies: one })
    expect([first, second]).toMatchObject([{ allowed: true }, { allowed: false }])
  })

  it.each([0, -1, 1.5, NaN, '5', 1e9])('are not bounded by %p', (maxShapes) => {
    expect(() => memoryStore({ maxShapes: maxShapes as number })).toThrow(PolicyError)
  })
})
