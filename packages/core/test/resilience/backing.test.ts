import { gcra, memoryStore } from '../../src/index.js'
import { backingOf } from '../../src/resilience/backing.js'
import { bytesInUse } from '../faults/heap.js'

jest.setTimeout(60_000)

const list = (seconds: number) => [gcra({ limit: 1, window: `${seconds}s` })]

describe('the denials of a store', () => {
  const backing = () =>
    backingOf({ ...memoryStore(), denialCache: { maxAge: 1e6, maxKeys: 10 }, now: () => 0 })

  it('are one for all keyspaces of a state', () => {
    const all = backing()
    expect(all.denials('a', list(1))).toBe(all.denials('a', list(1)))
    expect(all.denials('a', list(1))).not.toBe(all.denials('b', list(1)))
  })

  it('take no memory once the keyspaces of a state are gone', async () => {
    const all = backing()
    const before = bytesInUse()
    for (let round = 0; round < 20; round++) {
      for (let i = 1; i <= 1000; i++) all.denials(`limiter ${round}`, list(i))
      await new Promise((resolve) => setImmediate(resolve))
      bytesInUse()
    }
    expect(bytesInUse() - before).toBeLessThan(3_000_000) // 20,000 x 1 kB otherwise
    expect(all.denials('a', list(1))).toBeDefined()
  })
})
