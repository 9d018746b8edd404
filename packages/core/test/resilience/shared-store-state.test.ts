import { setImmediate } from 'node:timers/promises'
import { collect } from '@sluice/harness/figures'
import { gcra, memoryStore } from '../../src/index.js'
import { sharedStateOf } from '../../src/resilience/resilient-store.js'

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
    const caches = Array.from({ length: 5000 }, (_, i) => new WeakRef(all.denialCache('a', list(i + 1))!))
    await setImmediate() // a WeakRef keeps what it names until the end of this turn
    collect()
    expect(caches.filter((each) => each.deref())).toEqual([])
    expect(all.denialCache('a', list(1))).toBeDefined()
  })
})
