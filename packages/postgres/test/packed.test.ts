import { numbersOf, packed, stateOf, unpacked } from '../src/packed.js'

describe('a packed state', () => {
  it.each([
    [[]],
    [[0]],
    [[127, 128, 129]],
    [[2 ** 31, 2 ** 32, 2 ** 52 - 1, 2 ** 53]],
    [[0, 0, 16_383, 16_384]],
    [[2 ** 32 * 86_400_000_000 + 2 ** 20]],
  ])('becomes the same numbers again: %j', (numbers) => {
    const state = stateOf(numbers)
    expect(numbersOf(unpacked(packed(state)))).toEqual(numbers)
    expect(unpacked(packed(state))).toEqual(state)
  })

  it('becomes the same numbers again beside every power of two that a number of JavaScript holds', () => {
    const powers = Array.from({ length: 1024 }, (_, exponent) => 2 ** exponent)
    const numbers = powers.flatMap((power) => (power <= 2 ** 53 ? [power - 1, power, power + 1] : [power]))
    expect(numbersOf(unpacked(packed(stateOf(numbers))))).toEqual(numbers)
  })

  it('takes a byte for each seven bits', () => {
    expect(packed(stateOf([0, 127, 128, 2 ** 50]))).toHaveLength(1 + 1 + 2 + 8)
  })

  it('is none that a keyspace accepts if it ends within a number', () => {
    const state = unpacked(Uint8Array.from([1, 129]))
    expect(state).toHaveLength(1)
    expect(numbersOf(state)).toEqual([])
  })
})
