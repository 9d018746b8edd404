import type { Basis } from '../index.js'
import { bold, faint, type TextLine, printable } from './door.js'

/** The terminal that a report is printed on, as its page. */
export interface Page {
  /** In columns. */
  readonly width: number
  /** Columns for the name of a caller, beside the figures of a row. */
  readonly keys: number
}

/**
 * The page of the terminal behind a stream; its width is 80 columns where it is not known. `keys` is the width for callers' keys
 * in a table: 45 columns are left for the figures beside them, but a key gets at least 20.
 */
export function pageOf({ columns }: NodeJS.WriteStream): Page {
  const width = columns ?? (Number(process.env.COLUMNS) || 80)
  return { width, keys: Math.max(20, width - 45) }
}

/**
 * The rows as lines of text with their columns aligned: the first column to the left, the others to the right. The first
 * row has all columns. A shorter row ends with a remark, which does not widen its column.
 */
export function table(rows: readonly (readonly string[])[]): string[] {
  const full = rows.filter(({ length }) => length === rows[0]!.length)
  const widths = rows[0]!.map((_, i) => Math.max(...full.map((row) => row[i]!.length)))
  const padded = (cell: string, i: number): string =>
    i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)
  return rows.map((row) => row.map(padded).join('  ').trimEnd())
}

/** A text in lines that fit the terminal of stdout, broken at spaces and begun with `indent`; in one line without a terminal. */
export function wrapped(text: string, indent = ''): string[] {
  const columns = process.stdout.columns ?? Infinity
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < columns) lines[lines.length - 1] += ` ${word}`
    else lines.push(indent + word)
  }
  return lines
}

/** A count, and of what: `1 caller`, `2,000 callers`. */
export function count(number: number, thing = ''): string {
  const text = String(number).replace(/\B(?=(\d{3})+$)/g, ',')
  return thing === '' ? text : `${text} ${thing}${number === 1 ? '' : 's'}`
}

/**
 * A share from 0 to 1 as a percentage of two or three digits, such as `0.12 %`. Near 100 % it gets as many more digits as
 * show that it is not all: `99.98 %`.
 */
export function percent(share: number): string {
  const digits = share > 0.9999 ? 9 : share > 0.99 ? 5 : share > 0.1 ? 3 : 2
  return `${Number((share * 100).toPrecision(digits))} %`
}

/**
 * A length of time in milliseconds as text: below a minute in one unit (`4.2s`), else in its two largest units (`3m
 * 20s`), rounded up. null is for ever.
 */
export function lengthOfTime(ms: number | null): string {
  if (ms === null) return 'for ever'
  if (ms < 60_000) return ms < 1000 ? `${ms}ms` : `${Math.ceil(ms / 100) / 10}s`
  const seconds = Math.ceil(ms / 1000)
  const [minutes, hours] = [60, 3600].map((unit) => Math.floor(seconds / unit)) as [number, number]
  const units = [Math.floor(hours / 24), hours % 24, minutes % 60, seconds % 60]
  const largest = units.findIndex((unit) => unit > 0)
  return `${units[largest]}${'dhms'[largest]} ${units[largest + 1]}${'dhms'[largest + 1]}`
}

/** A time of RFC 3339 as reports show it, to the second: `2025-10-10 13:55:36`; `-` for none. */
export const shown = (time: string | null): string => time?.replace('T', ' ').slice(0, 19) ?? '-'

/**
 * A report as lines: first the figures of the log that it rests on (`basis`), then its sections with empty lines between, and
 * last how many lines were read and skipped, with the first skipped line of each reason.
 */
export function pageLines(
  basis: Basis,
  sections: readonly (readonly TextLine[])[],
  page: Page,
): readonly TextLine[] {
  const { calls, callers, from, to, resolutionMs, denied, lines, read, outside, groups, skipped } = basis
  const unit = { 1000: 'whole seconds', 1: 'milliseconds' }[resolutionMs] ?? 'microseconds'
  const limited = denied === null ? '429s not known' : `${percent(denied)} answered 429`
  const formats = [...new Set(Object.values(basis.formats))].join(', ') || 'none, without a line'
  const head = [
    ...(basis.complete ? [] : [bold('interrupted: what was found until then')]),
    ...(denied === null ? [bold('no status was found: name it with --field status=PATH')] : []),
    ...(denied! > 0.01 ? [bold(`${percent(denied!)} of the calls were answered 429: ${HIDDEN}`)] : []),
    `${count(calls, 'call')} of ${count(callers, 'caller')}, ${shown(from)} to ${shown(to)}`,
    faint(`format: ${formats}; times in ${unit}; ${limited}`),
  ]
  const beside = outside > 0 ? ` (${count(outside)} outside --where)` : ''
  const sum = `${count(lines, 'line')} = ${count(read)} read${beside} + ${count(lines - read)} skipped`
  const reasons = Object.entries(skipped).map(([reason, { count: many, source, line, text }]) => {
    const first = `  ${reason}: ${count(many)}, first ${source}:${line}: ${text}`
    return faint(printable(first, page.width))
  })
  const kinds = Object.entries(groups).map(([group, { lines: many, read: used }]) => {
    const use = used === many ? '' : used === 0 ? ', no calls' : `, ${count(used)} read`
    return faint(printable(`  ${group}: ${count(many, 'line')}${use}`, page.width))
  })
  const foot = [faint(sum), ...(kinds.length > 1 ? kinds : []), ...reasons]
  const all = [head, ...sections, foot].filter((section) => section.length > 0)
  return all.flatMap((section, i) => (i === 0 ? section : ['', ...section]))
}

const HIDDEN = 'callers wanted more than this log shows'
