import { millisecondsOf } from '@sluice/core/internal'

/** One call of a pasted list. */
export interface PastedCall {
  /** Milliseconds from the start. */
  readonly at: number
  readonly cost: number
  /** 1 is the first key. */
  readonly key: number
}

const DAY_MS = 86_400_000
export const MOST_CALLS = 100_000

/**
 * Reads a call a line: a time in milliseconds, with a unit (`1.5s`), or an instant (`2026-01-01T10:00:00Z`), then, if they are not 1,
 * the cost and the number of the key. Instants are counted from the start of the first one's day.
 * @throws {TypeError} for a line that is none.
 */
export function parseList(text: string): readonly PastedCall[] {
  const calls: PastedCall[] = []
  let origin: number | undefined
  for (const [i, line] of text.split(/[\n;]/).entries()) {
    if (line.trim() === '') continue
    const refuse = (what: string): never => {
      throw new TypeError(`line ${i + 1}: expected ${what}, got ${line.slice(0, 40)}`)
    }
    const [time = '', cost = '1', key = '1', ...rest] = line.trim().split(/[\s,]+/)
    const instant = Date.parse(/^\d{4}-\d\d-\d\dT/.test(time) ? time : '')
    if (instant >= 0) origin ??= instant - (instant % DAY_MS)
    const at = instant >= 0 ? instant - origin! : spanOf(time)
    if (!(at >= 0 && at <= DAY_MS))
      refuse("a time within a day, such as '250', '1.5s' or '2026-01-01T10:00:00Z'")
    if (!/^\d{1,10}$/.test(cost) || Number(cost) > 2 ** 31) refuse('a cost from 0 to 2^31 after the time')
    if (!/^[1-9]\d{0,2}$/.test(key) || rest.length > 0)
      refuse('the number of a key from 1 to 999 after the cost')
    calls.push({ at, cost: Number(cost), key: Number(key) })
  }
  if (calls.length === 0) throw new TypeError('the list has no call')
  if (calls.length > MOST_CALLS)
    throw new TypeError(`the list has ${calls.length} calls, more than ${MOST_CALLS}`)
  return calls.sort((one, other) => one.at - other.at)
}

/** Milliseconds of a text such as `250` or `1.5s`; NaN of any other. */
function spanOf(text: string): number {
  const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  return Math.round(Number(number) * millisecondsOf(`1${unit}`))
}

/** The list as it is pasted, in milliseconds. */
export function formatList(calls: readonly PastedCall[]): string {
  const lines = calls.map(({ at, cost, key }) => `${at} ${cost} ${key}`.replace(/( 1)? 1$/, ''))
  return lines.join('\n')
}
