import { KeyIndex } from '../../../src/stores/memory/key-index.js'

/** An index and a Map that get the same changes. */
function open() {
  const keys: (string | undefined)[] = [undefined]
  let compared = 0
  const index = new KeyIndex({
    keyAt(row) {
      compared++
      return keys[row]
    },
  })
  const rows = new Map<string, number>()
  const add = (key: string) => {
    rows.set(key, keys.push(key) - 1)
    index.add(key, rows.get(key)!)
  }
  const remove = (key: string) => {
    index.delete(key, rows.get(key)!)
    rows.delete(key)
  }
  const isAsTheMap = (key: string) => index.get(key) === (rows.get(key) ?? 0)
  /** Keys that one look-up of each of these compared with its own, at most. */
  const mostCompared = (looked: readonly string[]) => {
    let most = 0
    for (const key of looked) {
      compared = 0
      index.get(key)
      most = Math.max(most, compared)
    }
    return most
  }
  return { index, rows, add, remove, isAsTheMap, mostCompared }
}

describe('the index of keys', () => {
  it('finds what a Map finds, while keys come and go', () => {
    const { rows, add, remove, isAsTheMap } = open()
    let random = 1
    const below = (bound: number) =>
      Math.floor(((random = (Math.imul(random, 1664525) + 1013904223) >>> 0) / 2 ** 32) * bound)
    let wrong = 0
    for (let i = 0; i < 100_000; i++) {
      const key = `user:${below(30_000)}`
      if (!rows.has(key)) add(key)
      else if (below(3) === 0) remove(key)
      if (!isAsTheMap(key)) wrong++
    }
    for (let i = 0; i < 30_000; i++) if (!isAsTheMap(`user:${i}`)) wrong++
    expect(wrong).toBe(0)
    expect(rows.size).toBeGreaterThan(10_000)
  })

  it('keeps keys of every length apart', () => {
    const { rows, add, isAsTheMap } = open()
    const lengths = Array.from({ length: 129 }, (_, length) => length)
    for (const letter of ['a', '\0', '\uffff', '\ud800']) {
      for (const length of lengths) if (!rows.has(letter.repeat(length))) add(letter.repeat(length))
    }
    for (let i = 0; i < 2000; i++) add(`${i}`)
    expect([...rows.keys()].every(isAsTheMap)).toBe(true)
  })

  it('compares a key with at most 32 others where the hashes of all are equal', () => {
    const { rows, add, remove, isAsTheMap, mostCompared } = open()
    const imul = jest.spyOn(Math, 'imul').mockReturnValue(42)
    const keys = Array.from({ length: 3000 }, (_, i) => `${1000 + i}`)
    for (const key of keys) add(key)
    for (const key of keys.filter((_, i) => i % 2 === 0)) remove(key)
    expect(keys.every(isAsTheMap)).toBe(true)
    for (const key of keys.slice(0, 100)) if (!rows.has(key)) add(key)
    expect(keys.every(isAsTheMap)).toBe(true)
    expect(mostCompared(keys)).toBeLessThanOrEqual(32)
    imul.mockRestore()
  })

  it.each([
    [64, 64],
    [128, 1],
  ])('is not led to collisions by Thue-Morse strings of %i characters', (length, apart) => {
    const { rows, add, mostCompared } = open()
    for (let i = 0; i < 2000; i++) add(`${i}`)
    for (let i = -500; i < 500; i++) add(thueMorse(length, 0x8000 + i * apart, 0x8000 - i * apart))
    expect(mostCompared([...rows.keys()])).toBeLessThanOrEqual(2)
  })
})

/**
 * Two letters in the order of the Thue-Morse sequence. The strings above differ by multiples of a sequence of 1 and -1 whose polynomial
 * has a factor of 2^32 at every odd number, with the distance of the letters: all of them have one hash if that is a polynomial of
 * the letters.
 */
function thueMorse(length: number, zero: number, one: number): string {
  const ones = (n: number): number => (n === 0 ? 0 : (n & 1) + ones(n >> 1))
  return String.fromCharCode(...Array.from({ length }, (_, i) => (ones(i) % 2 === 0 ? zero : one)))
}
