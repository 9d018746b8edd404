import type { Basis } from '../index.js'

/** The terminal that a report is printed on. */
export interface Page {
  /** In columns. */
  readonly width: number
  bold(text: string): string
  faint(text: string): string
}

export function pageOf({ isTTY, columns }: NodeJS.WriteStream): Page {
  const isColoured = isTTY && !process.env.NO_COLOR
  const style = (code: number) => (text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { width: columns ?? (Number(process.env.COLUMNS) || 80), bold: style(1), faint: style(2) }
}

/** Rows with their columns beside each other, the first to the left and the others to the right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const width = (i: number): number => Math.max(...rows.map((row) => row[i]?.length ?? 0))
  const widths = rows[0]!.map((_, i) => width(i))
  const padded = (cell: string, i: number): string =>
    i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)
  return rows.map((row) => row.map(padded).join('  ').trimEnd())
}

/** A count, and of what: `1 caller`, `2,000 callers`. */
export function count(number: number, thing = ''): string {
  const text = String(number).replace(/\B(?=(\d{3})+$)/g, ',')
  return thing === '' ? text : `${text} ${thing}${number === 1 ? '' : 's'}`
}

/** A share of 1 to two digits, and of nearly all to five. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(share > 0.99 ? 5 : share > 0.1 ? 3 : 2))} %`
}

/** A length of time in two units: `4.2s`, `3m 20s`. null is for ever. */
export function length(ms: number | null): string {
  if (ms === null) return 'for ever'
  if (ms < 60_000) return ms < 1000 ? `${ms}ms` : `${Math.ceil(ms / 100) / 10}s`
  const seconds = Math.ceil(ms / 1000)
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  if (days > 0) return `${days}d ${hours}h`
  return hours > 0 ? `${hours}h ${minutes}m` : `${minutes}m ${seconds % 60}s`
}

/** A time without the T and the zone. */
export function shown(time: string | null): string {
  return time === null ? '-' : time.replace('T', ' ').slice(0, 19)
}

/** A text of a log, which may hold codes that move the cursor. */
export function printable(text: string): string {
  return text.replace(/[^\x20-\x7e\u00a0-\uffff]/g, '?')
}

/** What a report rests on, before it. */
export function basisLines(
  { calls, callers, from, to, resolutionMs, denied, formats, complete }: Basis,
  page: Page,
): string[] {
  const unit = resolutionMs === 1000 ? 'whole seconds' : resolutionMs === 1 ? 'milliseconds' : 'microseconds'
  const limited = `${percent(denied)} of the calls were answered 429: callers wanted more than this log shows`
  return [
    ...(complete ? [] : [page.bold('interrupted: figures of the beginning only')]),
    ...(denied > 0.01 ? [page.bold(limited)] : []),
    `${count(calls, 'call')} of ${count(callers, 'caller')}, ${shown(from)} to ${shown(to)}`,
    page.faint(
      `format: ${[...new Set(Object.values(formats))].join(', ')}; times in ${unit}; ${percent(denied)} answered 429`,
    ),
  ]
}

/** The sum of lines, at the end of a report. */
export function ledgerLines({ lines, read, outside, skipped }: Basis, page: Page): string[] {
  const reasons = Object.entries(skipped).map(([reason, { count: many, source, line, text }]) =>
    `  ${reason}: ${count(many)}, first ${source}:${line}: ${printable(text)}`.slice(0, page.width),
  )
  const beside = outside > 0 ? ` (${count(outside)} outside --where)` : ''
  return [
    `${count(lines, 'line')} = ${count(read)} read${beside} + ${count(lines - read)} skipped`,
    ...reasons,
  ].map((line) => page.faint(line))
}
