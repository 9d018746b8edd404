import { setImmediate } from 'node:timers/promises'
import { FakeClock } from '@sluice/testing'
import { collect } from '@sluice/harness/figures'
import { createLimiter, slidingLog } from '../../src/index.js'
import { Leases } from '../../src/leases/leases.js'
import { RemoteStore } from '@sluice/harness/stores'

const list = (seconds: number) => [slidingLog({ limit: 100, window: `${seconds}s` })]

/** The limiter knows its own list and the one that a call has brought last, under which bans have to be written. */
const open = () => {
  const store = Object.assign(new RemoteStore(new FakeClock().now), { maxShapes: 1 })
  return createLimiter({ name: 'api', policies: list(1), store, leases: { ttl: '200ms' } })
}

describe('the leases of a list of policies that is given with a call', () => {
  it('take no memory once the list is gone and no longer known', async () => {
    const used: WeakRef<Leases>[] = []
    const { findOrBegin } = Leases.prototype
    Leases.prototype.findOrBegin = function (...args) {
      used.push(new WeakRef(this))
      return findOrBegin.apply(this, args)
    }
    const limiter = open()
    try {
      for (let i = 0; i < 600; i++) await limiter.consume('k', { policies: list(i + 2) })
      await setImmediate() // a WeakRef keeps what it names until the end of this turn
      collect()
      expect(used.filter((each) => each.deref())).toHaveLength(1)
    } finally {
      Leases.prototype.findOrBegin = findOrBegin
      await limiter.close()
    }
  })

  it('serve every list of the same shapes', async () => {
    const limiter = open()
    const lists = [1, 2].map(() => list(10))
    for (let i = 0; i < 16; i++) await limiter.consume('k', { policies: lists[i % 2]! })
    expect(lists.map((policies) => 'allowed' in limiter.decide('k', { policies }))).toEqual([true, true])
    await limiter.close()
  })
})
