import { InFlight } from '../../src/stores/in-flight.js'

describe('calls in flight', () => {
  it('are at most 1,000, and make room when they end', () => {
    const inFlight = new InFlight(1000, () => 0)
    const begun = Array.from({ length: 1000 }, () => inFlight.begin(0))
    expect(inFlight.room).toBe(0)
    inFlight.end(begun[500]!)
    expect(inFlight.room).toBeGreaterThan(0)
  })

  it('count as lost after a minute, to the second', () => {
    let now = 0
    const inFlight = new InFlight(1000, () => now)
    const begun = Array.from({ length: 1000 }, (_, i) => inFlight.begin(i))
    now = 60_000
    expect(inFlight.room).toBe(0)
    now = 61_000
    expect(inFlight.room).toBeGreaterThan(0)
    for (const call of begun) inFlight.end(call)
    for (let i = 0; i < 999; i++) inFlight.begin(now)
    expect(inFlight.room).toBeGreaterThan(0)
    inFlight.begin(now)
    expect(inFlight.room).toBe(0)
  })

  it('make room for no more calls than were lost', () => {
    let now = 0
    const inFlight = new InFlight(1000, () => now)
    for (let i = 0; i < 1500; i++) inFlight.begin(i)
    now = 61_000
    expect(inFlight.room).toBeGreaterThan(0)
    for (let i = 0; i < 500; i++) inFlight.begin(now)
    expect(inFlight.room).toBe(0)
  })
})
