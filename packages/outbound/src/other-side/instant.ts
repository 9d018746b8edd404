const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850 = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Milliseconds since 1970 of a date in one of the three forms that RFC 9110 (5.6.7) obliges recipients to read, or NaN.
 * `Date.parse` alone takes numbers and nonsense for dates.
 */
export function httpDate(text: string | undefined): number {
  if (text === undefined) return NaN
  if (IMF_FIXDATE.test(text) || RFC_850.test(text)) return Date.parse(text)
  return ASCTIME.test(text) ? Date.parse(`${text} GMT`) : NaN
}
