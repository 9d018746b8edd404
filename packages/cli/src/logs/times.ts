/*
 * The times of logs as microseconds since 1970: the common log format, RFC 3339, and epochs in any unit.
 */

/** Parses times. Most lines have the second of the line before, whose text is remembered. */
export class TimeReader {
  #text = ''
  #us = NaN

  /** A logged time in microseconds since 1970, or NaN. The last one is remembered, as all lines of one second have the same. */
  read(text: string): number {
    if (text === this.#text) return this.#us
    this.#text = text
    return (this.#us = dateTime(text) ?? epochTime(text))
  }
}

/** `10/Oct/2000:13:55:36 -0700` */
const CLF =
  /^(?<day>\d\d?)\/(?<month>\w{3})\/(?<year>\d{4}):(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?<fraction>\.\d+)?(?: (?<zone>[+-]\d\d):?(?<zoneMinute>\d\d))?$/
/** RFC 3339, or nearly: a space for the T, a comma before the fraction, no zone for UTC. */
const ISO =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[T\t ](?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?<fraction>[.,]\d+)?\s?(?:Z|UTC|(?<zone>[+-]\d\d):?(?<zoneMinute>\d\d))?$/
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'

/**
 * A date with a clock time in microseconds since 1970, as web servers log it (`10/Oct/2000:13:55:36 -0700`) or as ISO
 * 8601. Without a zone it is UTC. Undefined for another form, NaN for an unknown name of a month.
 */
function dateTime(text: string): number | undefined {
  const found = (CLF.exec(text) ?? ISO.exec(text))?.groups
  if (!found) return undefined
  const {
    year,
    month = '',
    day,
    hour,
    minute,
    second,
    fraction = '',
    zone = '+00',
    zoneMinute = '00',
  } = found
  const monthNumber = /\d/.test(month) ? Number(month) : MONTHS.indexOf(month) / 3 + 1 // a fraction if it is no month
  if (!Number.isInteger(monthNumber)) return NaN
  const [hours, minutes] = [Number(hour) - Number(zone), Number(minute) - Number(zone[0] + zoneMinute)]
  const ms = Date.UTC(Number(year), monthNumber - 1, Number(day), hours, minutes, Number(second))
  return ms * 1000 + (fraction === '' ? 0 : Number(fraction.slice(1, 7).padEnd(6, '0')))
}

/**
 * The microseconds since 1970 that a number means; NaN for a text that is no such number. Its size shows whether it counts seconds,
 * milliseconds, microseconds or nanoseconds, for the years 1990 to 5000. The fraction is computed apart, as the number with it
 * would lose its last digits.
 */
function epochTime(text: string): number {
  const [, whole, fraction = '0'] = /^(\d{9,19})(\.\d+)?$/.exec(text) ?? []
  const epoch = Number(whole)
  const unit = epoch < 1e11 ? 1e6 : epoch < 1e14 ? 1e3 : epoch < 1e17 ? 1 : 1e-3
  return Math.floor(epoch * unit) + Math.round(Number(fraction) * unit)
}

/**
 * How finely a log writes its times, in microseconds, judged by some of them: whole seconds (1e6) if all times are, else whole
 * milliseconds (1e3) if all are, else 1.
 */
export function resolutionOf(times: readonly number[]): number {
  return [1e6, 1e3].find((unit) => times.length > 0 && times.every((time) => time % unit === 0)) ?? 1
}
