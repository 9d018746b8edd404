/**
 * Reads the values of headers about limits. The text is untrusted: every function runs in linear time, and ignores a value
 * that is longer than any sound one.
 */

/** The number that a header's text is, in decimal digits and not negative; NaN for anything else. */
export function numberIn(text: string | undefined): number {
  const value = short(text)
  return NUMBER.test(value) ? Number(value) : NaN
}

/**
 * Milliseconds since 1970 of a date in one of the three forms that RFC 9110 (5.6.7) obliges recipients to read, or NaN.
 * `Date.parse` alone accepts numbers and other texts that are no dates.
 */
export function httpDateIn(text: string | undefined): number {
  const value = short(text)
  if (IMF_FIXDATE.test(value) || RFC_850.test(value)) return Date.parse(value)
  return ASCTIME.test(value) ? Date.parse(`${value} GMT`) : NaN
}

/**
 * Returns the wait in a header's text, in milliseconds: 0 or less if it is over, NaN if the text has none. Some gateways send a
 * list of waits: the longest counts. A wait has any of the forms in `FORMS`, whatever the header: a number of `unitMs` milliseconds
 * each, a duration such as `1m30s`, or the instant at which the wait ends. `now` is the sender's clock, in milliseconds since 1970.
 */
export function waitMsIn(text: string | undefined, now: number, unitMs = 1000): number {
  const waits = listIn(text).map((value) => {
    const [, waitMs] = FORMS.find(([form]) => form.test(value)) ?? []
    return waitMs?.(value, now, unitMs) ?? NaN
  })
  const validWaits = waits.filter((ms) => !Number.isNaN(ms))
  return validWaits.length > 0 ? Math.max(...validWaits) : NaN
}

/** The least number in a list of numbers; NaN if an item of the list is no number. */
export function leastIn(text: string | undefined): number {
  return Math.min(...listIn(text).map(numberIn))
}

/**
 * Milliseconds of the wait that a number means. A number too large for a wait is the instant at which it ends, in seconds or, if
 * larger still, in milliseconds since 1970.
 */
function numberMs(value: string, now: number, unitMs: number): number {
  const number = Number(value)
  if (number >= LEAST_EPOCH_MS) return number - now
  return number >= LEAST_EPOCH_S ? number * 1000 - now : number * unitMs
}

/** Milliseconds of a duration such as '1m30s', as some providers write their headers. */
function durationMs(text: string): number {
  let ms = 0
  for (const [, count, unit] of text.matchAll(PART)) ms += Number(count) * UNIT_MS[unit!]!
  return ms
}

/** The text without white space at its ends; empty if it is absent or longer than 64 characters, which no sound value is. */
function short(text: string | undefined): string {
  return text === undefined || text.length > LONGEST ? '' : text.trim()
}

/** The values in a list, which commas separate. The comma after a weekday belongs to a date, and separates nothing. */
function listIn(text: string | undefined): readonly string[] {
  return short(text).split(/(?<!day|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s*,\s*/)
}

/**
 * Splits a list in the syntax of RFC 9651 into its items, and each item into its parts: `"a, b";r=0;t=5, limit=9` becomes
 * `[['"a, b"', 'r=0', 't=5'], ['limit=9']]`. Commas and semicolons in quotes separate nothing. Items after the 100th, and parts
 * after the 20th, are dropped: no sound reply has as many.
 */
export function itemsOf(list: string): readonly (readonly string[])[] {
  const items: string[][] = [[]]
  let start = 0
  let quoted = false
  for (let i = 0; i <= list.length; i++) {
    const isEnd = i === list.length
    const code = isEnd ? COMMA : list.charCodeAt(i) // the end closes an item, as a comma does
    const isSeparator = !quoted && (code === COMMA || code === SEMICOLON)
    if (quoted && code === BACKSLASH)
      i++ // the character behind it has no meaning
    else if (code === QUOTE) quoted = !quoted
    else if (isSeparator || isEnd) {
      const parts = items.at(-1)!
      if (parts.length < MOST_PARTS) parts.push(list.slice(start, i).trim())
      start = i + 1
      if (code === COMMA && items.length === MOST_ITEMS) break
      if (code === COMMA && !isEnd) items.push([])
    }
  }
  return items
}

/**
 * The digits in the part `name=digits`, such as `r=50`, among the parts of one item of a list (`itemsOf`). Undefined if there is no
 * such part, or if its value is not a whole number. The last of several such parts counts, as RFC 9651 has it for parameters.
 */
export function digitsNamed(name: string, parts: readonly string[]): string | undefined {
  const value = parts.findLast((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
  return DIGITS.test(value) ? value : undefined
}

const LONGEST = 64
const NUMBER = /^\d{1,15}(?:\.\d{1,9})?$/
const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850 = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/
const DURATION = /^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|ns|[dhms]))+$/
const PART = /(\d+(?:\.\d+)?)(ms|us|ns|[dhms])/g
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
/** From here on a number means seconds since 1970, as since 2001; as a delay it would be 31 years. */
const LEAST_EPOCH_S = 1e9
/** From here on a number means milliseconds since 1970; as seconds it would be the year 5138. */
const LEAST_EPOCH_MS = 1e11
const [QUOTE, COMMA, SEMICOLON, BACKSLASH] = [34, 44, 59, 92]
const [MOST_ITEMS, MOST_PARTS] = [100, 20]
const DIGITS = /^\d+$/
/** The forms of a wait, each with the function that reads it as milliseconds from `now`. */
const FORMS: readonly (readonly [RegExp, (value: string, now: number, unitMs: number) => number])[] = [
  [NUMBER, numberMs],
  [DURATION, durationMs],
  [RFC_3339, (value, now) => Date.parse(value.toUpperCase().replace(' ', 'T')) - now],
  [/^[A-Z][a-z]/, (value, now) => httpDateIn(value) - now],
]
