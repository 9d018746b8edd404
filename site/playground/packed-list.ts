import { MOST_CALLS, type PastedCall } from './pasted.js'

/*
 * A list of calls in few characters: three rows of numbers (the differences of times, costs, keys), each in Rice codes, which
 * take about log2(mean) + 1.5 bits a number, in base64 for URLs. 800 random calls of a minute take about 1,100 characters.
 */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
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
  const bits = bitsOf(calls.length, 32) + bitsOf(unit, 32) + rows.map(rowBits).join('')
  return bits.replace(/.{1,6}/g, (six) => DIGITS[parseInt(six.padEnd(6, '0'), 2)]!)
}

/** Each bit is read once: a link may be of any length. @throws {TypeError} for a text that is no list. */
export function unpackList(text: string): readonly PastedCall[] {
  const refuse = (): never => {
    throw new TypeError('the list of calls is damaged, or cut off')
  }
  if (/[^\w-]/.test(text)) refuse()
  const bits = Array.from(text, (digit) => bitsOf(DIGITS.indexOf(digit), 6)).join('')
  let at = 0
  const take = (count: number): number => {
    if (at + count > bits.length) refuse()
    return count === 0 ? 0 : parseInt(bits.slice(at, (at += count)), 2)
  }
  const [length, unit] = [take(32), take(32)]
  if (length > MOST_CALLS) refuse()
  const takeRow = (): number[] => {
    const low = take(6)
    if (low === EQUAL) return Array<number>(length).fill(take(32))
    return Array.from({ length }, () => {
      const high = bits.indexOf('0', at) - at
      if (high < 0) refuse()
      at += high + 1
      return high * 2 ** low + take(low)
    })
  }
  const [differences, costs, keys] = [takeRow(), takeRow(), takeRow()]
  let time = 0
  return differences.map((each, i) => ({ at: (time += each * unit), cost: costs[i]!, key: keys[i]! }))
}

function rowBits(row: readonly number[]): string {
  if (row.every((each) => each === row[0])) return bitsOf(EQUAL, 6) + bitsOf(row[0] ?? 0, 32)
  const mean = row.reduce((sum, each) => sum + each, 0) / row.length
  const low = Math.max(0, Math.round(Math.log2(mean * Math.LN2 + 1)))
  const codes = row.map((each) => `${'1'.repeat(each / 2 ** low)}0${bitsOf(each % 2 ** low, low)}`)
  return bitsOf(low, 6) + codes.join('')
}

/** The lowest `count` bits of a number, the highest of them first. */
function bitsOf(value: number, count: number): string {
  return count === 0 ? '' : value.toString(2).padStart(count, '0')
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other)
}
