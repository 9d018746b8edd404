import type { PastedCall } from './pasted.js'

/*
 * A list of calls in few characters: three rows of numbers (the differences of times, costs, keys), each in Rice codes, which
 * take about log2(mean) + 1.5 bits a number, in base64 for URLs. 800 random calls of a minute take about 1,100 characters.
 */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** A quotient that is larger is written in full. */
const MOST_ONES = 24
const FULL_BITS = 32

export function packList(calls: readonly PastedCall[]): string {
  const differences = calls.map(({ at }, i) => at - (calls[i - 1]?.at ?? 0))
  const unit = Math.max(1, differences.reduce(greatestDivisor, 0))
  const bits: number[] = []
  write(bits, calls.length, FULL_BITS)
  write(bits, unit, FULL_BITS)
  const rows = [
    differences.map((each) => each / unit),
    calls.map(({ cost }) => cost),
    calls.map(({ key }) => key),
  ]
  for (const row of rows) writeRow(bits, row)
  let text = ''
  for (let i = 0; i < bits.length; i += 6) {
    let digit = 0
    for (let bit = 0; bit < 6; bit++) digit = digit * 2 + (bits[i + bit] ?? 0)
    text += DIGITS[digit]
  }
  return text
}

/** @throws {TypeError} for a text that is no list. */
export function unpackList(text: string): readonly PastedCall[] {
  const digits = text.split('').map((char) => DIGITS.indexOf(char))
  const reader = new Bits(digits)
  const [length, unit] = [reader.take(FULL_BITS), reader.take(FULL_BITS)]
  if (digits.includes(-1) || length > 6 * digits.length) throw new TypeError('the list of calls is damaged')
  const [differences, costs, keys] = [0, 1, 2].map(() => readRow(reader, length)) as [
    number[],
    number[],
    number[],
  ]
  let at = 0
  return differences.map((each, i) => ({ at: (at += each * unit), cost: costs[i]!, key: keys[i]! }))
}

/** A row of equal numbers is written once: 6 bits for the parameter, of which 63 says so. */
function writeRow(bits: number[], row: readonly number[]): void {
  if (row.every((each) => each === row[0])) {
    write(bits, 63, 6)
    write(bits, row[0] ?? 0, FULL_BITS)
    return
  }
  const mean = row.reduce((sum, each) => sum + each, 0) / row.length
  const low = Math.max(0, Math.round(Math.log2(mean * Math.LN2 + 1)))
  write(bits, low, 6)
  for (const each of row) {
    const high = Math.floor(each / 2 ** low)
    for (let i = 0; i < Math.min(high, MOST_ONES); i++) bits.push(1)
    if (high >= MOST_ONES) write(bits, each, FULL_BITS)
    else {
      bits.push(0)
      write(bits, each % 2 ** low, low)
    }
  }
}

function readRow(reader: Bits, length: number): number[] {
  const low = reader.take(6)
  if (low === 63) return Array<number>(length).fill(reader.take(FULL_BITS))
  return Array.from({ length }, () => {
    let high = 0
    while (high < MOST_ONES && reader.take(1) === 1) high++
    return high === MOST_ONES ? reader.take(FULL_BITS) : high * 2 ** low + reader.take(low)
  })
}

function write(bits: number[], value: number, count: number): void {
  for (let bit = count - 1; bit >= 0; bit--) bits.push(Math.floor(value / 2 ** bit) % 2)
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other)
}

class Bits {
  #next = 0

  constructor(readonly digits: readonly number[]) {}

  take(count: number): number {
    let value = 0
    for (let i = 0; i < count; i++, this.#next++) {
      const digit = this.digits[Math.floor(this.#next / 6)]
      if (digit === undefined) throw new TypeError('the list of calls is cut off')
      value = value * 2 + ((digit >> (5 - (this.#next % 6))) & 1)
    }
    return value
  }
}
