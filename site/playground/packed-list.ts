import type { PastedCall } from './pasted.js'

/*
 * A list of calls in few characters: three rows of numbers (the differences of times, costs, keys), each in Rice codes, which
 * take about log2(mean) + 1.5 bits a number, in base64 for URLs. 800 random calls of a minute take about 1,100 characters.
 */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const FULL_BITS = 32
/** A quotient that is larger is written in full. */
const MOST_ONES = 24
/** In place of the number of low bits: one number follows, which all of the row are. */
const EQUAL = 63

export function packList(calls: readonly PastedCall[]): string {
  const differences = calls.map(({ at }, i) => at - (calls[i - 1]?.at ?? 0))
  const unit = Math.max(1, differences.reduce(greatestDivisor, 0))
  const rows = [
    differences.map((each) => each / unit),
    calls.map(({ cost }) => cost),
    calls.map(({ key }) => key),
  ]
  const bits = bitsOf(calls.length, FULL_BITS) + bitsOf(unit, FULL_BITS) + rows.map(rowBits).join('')
  return bits.replace(/.{1,6}/g, (six) => DIGITS[parseInt(six.padEnd(6, '0'), 2)]!)
}

/** @throws {TypeError} for a text that is no list. */
export function unpackList(text: string): readonly PastedCall[] {
  if (/[^\w-]/.test(text)) throw new TypeError('the list of calls is damaged')
  const bits = text.replace(/./g, (digit) => bitsOf(DIGITS.indexOf(digit), 6))
  let next = 0
  const take = (count: number): number => {
    if (next + count > bits.length) throw new TypeError('the list of calls is cut off')
    return parseInt(`0${bits.slice(next, (next += count))}`, 2)
  }
  const [length, unit] = [take(FULL_BITS), take(FULL_BITS)]
  if (length > bits.length) throw new TypeError('the list of calls is damaged')
  const takeRow = (): number[] => {
    const low = take(6)
    if (low === EQUAL) return Array<number>(length).fill(take(FULL_BITS))
    return Array.from({ length }, () => {
      let high = 0
      while (high < MOST_ONES && take(1) === 1) high++
      return high === MOST_ONES ? take(FULL_BITS) : high * 2 ** low + take(low)
    })
  }
  const [differences, costs, keys] = [takeRow(), takeRow(), takeRow()]
  let at = 0
  return differences.map((each, i) => ({ at: (at += each * unit), cost: costs[i]!, key: keys[i]! }))
}

function rowBits(row: readonly number[]): string {
  if (row.every((each) => each === row[0])) return bitsOf(EQUAL, 6) + bitsOf(row[0] ?? 0, FULL_BITS)
  const mean = row.reduce((sum, each) => sum + each, 0) / row.length
  const low = Math.max(0, Math.round(Math.log2(mean * Math.LN2 + 1)))
  const codes = row.map((each) => {
    const high = Math.floor(each / 2 ** low)
    if (high >= MOST_ONES) return '1'.repeat(MOST_ONES) + bitsOf(each, FULL_BITS)
    return `${'1'.repeat(high)}0${bitsOf(each % 2 ** low, low)}`
  })
  return bitsOf(low, 6) + codes.join('')
}

/** The lowest `count` bits of a number, the highest of them first. */
function bitsOf(value: number, count: number): string {
  return count === 0 ? '' : value.toString(2).padStart(count, '0')
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other)
}
