import { InFlight } from '../../src/resilience/pending-call.js'

describe('calls in flight', () => {
  it('are at most 1,000, and make room when they end', () => {
    const inFlight = new InFlight(() => 0)
    const begun = Array.from({ length: 1000 }, () => inFlight.begin(0))
    expect(inFlight.isFull).toBe(true)
    inFlight.end(begun[500]!)
    expect(inFlight.isFull).toBe(false)
  })

  it('count as lost after a minute, to the second', () => {
    let now = 0
    const inFlight = new InFlight(() => now)
    const begun = Array.from({ length: 1000 }, (_, i) => inFlight.begin(i))
    now = 60_000
    expect(inFlight.isFull).toBe(true)
    now = 61_000
    expect(inFlight.isFull).toBe(false)
    for (const call of begun) inFlight.end(call)
    for (let i = 0; i < 999; i++) inFlight.begin(now)
    expect(inFlight.isFull).toBe(false)
    inFlight.begin(now)
    expect(inFlight.isFull).toBe(true)
  })

  it('make room for no more calls than were lost', () => {
    let now = 0
    const inFlight = new InFlight(() => now)
    for (let i = 0; i < 1500; i++) inFlight.begin(i)
    now = 61_000
    expect(inFlight.isFull).toBe(false)
    for (let i = 0; i < 500; i++) inFlight.begin(now)
    expect(inFlight.isFull).toBe(true)
  })
})
