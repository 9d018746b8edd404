import { everyPolicy } from '@sluice/testing/internal'
import { gcra, slidingWindow, tokenBucket } from '../../src/index.js'
import { Tab } from './tab.js'

/* What took effect of units that were charged or given back beside a decision. */

const ten = { limit: 10, window: '10s' } as const

describe.each(everyPolicy({ limit: 10, window: 10_000 }))('%s', (_, policy) => {
  it('charges up to twice what it holds as of now, and gives back what it holds', () => {
    const tab = new Tab(policy)
    tab.charge(0, 2)
    expect(tab.correct('charge', 5)).toBe(5)
    expect(tab.owed()).toBe(7)
    expect(tab.correct('charge', 100)).toBe(13)
    expect(tab.correct('refund', 12)).toBe(12)
    expect(tab.owed()).toBe(8)
    expect(tab.correct('refund', 100)).toBe(8)
    expect(tab.owed()).toBe(0)
  })

  it('gives units of one charge back while they count', () => {
    const tab = new Tab(policy)
    expect(tab.charge(0, 4)).toBe(4)
    expect(tab.charge(0, 3)).toBe(7)
    expect(tab.release(0, 0, 3)).toBe(3)
    const later = (3 * policy.windowMs) / 1000
    expect(tab.charge(later, 5)).toBe(5)
    expect(tab.release(later, 1, 3)).toBe(0)
    expect(tab.owed()).toBe(5)
  })
})

describe('a token bucket that is refilled at intervals', () => {
  const bucket = (limit: number) => tokenBucket({ limit, window: '10s', capacity: 10, refill: 'interval' })

  it('gives back what its refills since cannot have given back', () => {
    const tab = new Tab(bucket(2))
    tab.charge(0, 8)
    tab.charge(1, 2)
    expect(tab.release(12, 0, 8)).toBe(6)
    expect(tab.owed()).toBe(2)
  })

  it('counts each refill by the largest limit that has refilled it', () => {
    const tab = new Tab(bucket(2), bucket(4))
    tab.charge(0, 8, 1)
    tab.charge(5, 1)
    expect(tab.release(12, 0, 8)).toBe(4)
    expect(tab.owed()).toBe(3)
  })
})

describe('a sliding window', () => {
  it('gives back out of its newest buckets as of now', () => {
    const tab = new Tab(slidingWindow(ten))
    tab.charge(0, 3)
    tab.charge(1, 3)
    expect(tab.correct('refund', 4)).toBe(4)
    expect(tab.owed()).toBe(2)
  })

  it('gives nothing back of buckets that no longer count', () => {
    const tab = new Tab(slidingWindow(ten))
    tab.charge(0, 3)
    tab.at(11)
    expect(tab.correct('refund', 3)).toBe(0)
  })
})

describe('gcra', () => {
  it('gives back what cannot have drained since, where time counts in milliseconds', () => {
    const tab = new Tab(gcra({ limit: 10, window: '2h' })) // a unit each 12 minutes
    tab.charge(0, 8)
    expect(tab.release(3600, 0, 8)).toBe(3)
  })

  it('counts what has drained by the largest limit that has drained it, whatever a smaller limit charges', () => {
    const [fast, slow] = [10, 5].map((limit) => gcra({ limit, window: '10s', burst: 10 }))
    const tab = new Tab(fast!, slow!)
    tab.charge(0, 8)
    tab.charge(2, 1, 1)
    expect(tab.release(4, 0, 8, 1)).toBe(4)
  })
})
