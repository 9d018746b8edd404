import { Circuit } from '../../src/resilience/circuit.js'

let now: number
let random: number
let circuit: Circuit<string>
beforeEach(() => {
  now = 5000
  random = 1
  circuit = new Circuit(
    () => now,
    () => random,
  )
})

function fail(times: number, everyMs: number): void {
  for (let i = 0; i < times; i++) {
    circuit.failed(`failure ${i}`, 50)
    now += everyMs
  }
}

describe('a circuit', () => {
  it('opens at the fifth failure in a row when they have gone on for two deadlines', () => {
    fail(4, 30)
    expect(circuit.open).toBeUndefined()
    fail(1, 0)
    expect(circuit.open).toBe('failure 0')
  })

  it('does not open on a burst of failures, however many', () => {
    fail(1000, 0)
    now += 99
    fail(1, 0)
    expect(circuit.open).toBeUndefined()
  })

  it('does not open as long as some calls succeed in between', () => {
    for (let i = 0; i < 100; i++) {
      fail(4, 100)
      circuit.succeeded()
    }
    expect(circuit.open).toBeUndefined()
  })

  it('returns the latest failure while it is open', () => {
    fail(6, 30)
    circuit.failed('another', 50)
    expect(circuit.open).toBe('another')
  })

  it('closes on one success, and then takes as many failures as before to open', () => {
    fail(6, 30)
    circuit.succeeded()
    expect(circuit.open).toBeUndefined()
    fail(4, 100)
    expect(circuit.open).toBeUndefined()
  })
})

describe('a probe', () => {
  it.each([
    [0, 50],
    [0.5, 75],
    [1, 100],
  ])('with the random number %d is due every %d ms, once', (number, ms) => {
    random = number
    fail(5, 30)
    now -= 30
    for (let round = 0; round < 3; round++) {
      now += ms - 1
      expect(circuit.claimProbe()).toBe(false)
      now += 1
      expect(circuit.claimProbe()).toBe(true)
      expect(circuit.claimProbe()).toBe(false)
    }
  })
})
