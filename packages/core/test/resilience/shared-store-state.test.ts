import { gcra, memoryStore } from '../../src/index.js'
import { sharedStateOf } from '../../src/resilience/shared-store-state.js'
import { bytesInUse } from '../faults/heap.js'

jest.setTimeout(60_000)

const list = (seconds: number) => [gcra({ limit: 1, window: `${seconds}s` })]

describe('the denial caches of a store', () => {
  const shared = () =>
    sharedStateOf({ ...memoryStore(), denialCache: { maxAge: 1e6, maxKeys: 10 }, now: () => 0 })

  it('are shared by all keyspaces of one state', () => {
    const all = shared()
    expect(all.denialCache('a', list(1))).toBe(all.denialCache('a', list(1)))
    expect(all.denialCache('a', list(1))).not.toBe(all.denialCache('b', list(1)))
  })

  it('take no memory once the keyspaces of a state are gone', async () => {
    const all = shared()
    const before = bytesInUse()
    for (let round = 0; round < 20; round++) {
      for (let i = 1; i <= 1000; i++) all.denialCache(`limiter ${round}`, list(i))
      await new Promise((resolve) => setImmediate(resolve))
      bytesInUse()
    }
    expect(bytesInUse() - before).toBeLessThan(3_000_000) // 20,000 x 1 kB otherwise
    expect(all.denialCache('a', list(1))).toBeDefined()
  })
})
