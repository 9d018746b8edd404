import { UnderWay } from '../../src/resilience/under-way.js'

const never = () => new Promise<never>(() => {})

describe('calls under way', () => {
  it('are at most 1,000, and give their room back when they are answered or fail', async () => {
    const underWay = new UnderWay(() => 0)
    const answers = Array.from({ length: 999 }, () => underWay.track(() => 'answer'))
    void underWay.track(never)
    expect(underWay.isFull).toBe(true)
    await Promise.all(answers)
    expect(underWay.isFull).toBe(false)
    for (let i = 0; i < 999; i++) underWay.track(() => Promise.reject(new Error('no'))).catch(() => {})
    expect(underWay.isFull).toBe(true)
    await new Promise((resolve) => setImmediate(resolve))
    expect(underWay.isFull).toBe(false)
  })

  it('are taken for lost after a minute', () => {
    let now = 0
    const underWay = new UnderWay(() => now)
    for (let i = 0; i < 1000; i++) {
      now = i
      void underWay.track(never)
    }
    now = 59_999
    expect(underWay.isFull).toBe(true)
    now = 60_000
    expect(underWay.isFull).toBe(false)
  })
})
