import { UnderWay } from '../../src/resilience/under-way.js'

describe('calls under way', () => {
  it('are at most 1,000, and give their room back when they end', () => {
    const underWay = new UnderWay(() => 0)
    const begun = Array.from({ length: 1000 }, () => underWay.begin(0))
    expect(underWay.isFull).toBe(true)
    underWay.end(begun[500]!)
    expect(underWay.isFull).toBe(false)
  })

  it('are taken for lost after a minute, to the second', () => {
    let now = 0
    const underWay = new UnderWay(() => now)
    const begun = Array.from({ length: 1000 }, (_, i) => underWay.begin(i))
    now = 60_000
    expect(underWay.isFull).toBe(true)
    now = 61_000
    expect(underWay.isFull).toBe(false)
    for (const call of begun) underWay.end(call)
    for (let i = 0; i < 999; i++) underWay.begin(now)
    expect(underWay.isFull).toBe(false)
    underWay.begin(now)
    expect(underWay.isFull).toBe(true)
  })

  it('that are lost make room for no more than there were', () => {
    let now = 0
    const underWay = new UnderWay(() => now)
    for (let i = 0; i < 1500; i++) underWay.begin(i)
    now = 61_000
    expect(underWay.isFull).toBe(false)
    for (let i = 0; i < 500; i++) underWay.begin(now)
    expect(underWay.isFull).toBe(true)
  })
})
