/** One call of a pasted list. */
export interface PastedCall {
  /** Milliseconds from the start. */
  readonly at: number
  readonly cost: number
  /** 1 is the first key. */
  readonly key: number
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const DAY_MS = 86_400_000
const MOST = 100_000

/**
 * Reads a call a line: a time in milliseconds, with a unit (`1.5s`), or an instant (`2026-01-01T10:00:00Z`), then, if they are not 1,
 * the cost and the number of the key. Instants are counted from the start of the first one's day.
 * @throws {TypeError} for a line that is none.
 */
export function parseList(text: string): readonly PastedCall[] {
  const lines = text.split(/\r?\n|;/).map((line) => line.trim())
  const calls: PastedCall[] = []
  let origin: number | undefined
  for (const [i, line] of lines.entries()) {
    if (line === '') continue
    const refuse = (what: string): never => {
      throw new TypeError(`line ${i + 1}: expected ${what}, got ${line.slice(0, 40)}`)
    }
    const [time = '', cost = '1', key = '1', ...rest] = line.split(/[\s,]+/)
    const instant = /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : undefined
    if (instant !== undefined) origin ??= Math.floor(instant / DAY_MS) * DAY_MS
    const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(time) ?? []
    const at = instant === undefined ? Math.round(Number(number) * UNITS[unit]!) : instant - origin!
    if (!(at >= 0 && at <= DAY_MS))
      refuse("a time within a day, such as '250', '1.5s' or '2026-01-01T10:00:00Z'")
    if (!/^\d{1,10}$/.test(cost) || Number(cost) > 2 ** 31) refuse('a cost from 0 to 2^31 after the time')
    if (!/^[1-9]\d{0,2}$/.test(key) || rest.length > 0)
      refuse('the number of a key from 1 to 999 after the cost')
    calls.push({ at, cost: Number(cost), key: Number(key) })
  }
  if (calls.length === 0) throw new TypeError('the list has no call')
  if (calls.length > MOST) throw new TypeError(`the list has ${calls.length} calls, more than ${MOST}`)
  return calls.sort((one, other) => one.at - other.at)
}

/** The list as it is pasted, in milliseconds. */
export function formatList(calls: readonly PastedCall[]): string {
  return calls
    .map(({ at, cost, key }) =>
      [at, ...(cost !== 1 || key !== 1 ? [cost] : []), ...(key === 1 ? [] : [key])].join(' '),
    )
    .join('\n')
}
