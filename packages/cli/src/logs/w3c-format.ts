import { type Format, type FormatOpener, given, microseconds, pathIn } from './format.js'
import type { TimeReader } from './times.js'

/*
 * The extended log file format of W3C, as CloudFront and IIS write it: a line `#Fields:` names the columns of those after it.
 * https://www.w3.org/TR/WD-logfile
 */

/** The columns that may hold a part of a call, the likeliest first. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  ip: ['c-ip'],
  forwarded: ['x-forwarded-for', 'cs(x-forwarded-for)'],
  method: ['cs-method'],
  path: ['cs-uri-stem', 'cs-uri'],
  status: ['sc-status'],
  host: ['x-host-header', 'cs-host', 'cs(host)'],
  duration: ['time-taken'],
}

export const w3c: FormatOpener = { name: 'w3c', open: (times) => new W3cFormat(times) }

class W3cFormat implements Format {
  readonly name = 'w3c'
  time = NaN
  #columns: readonly string[] = []
  #values: readonly string[] = []

  constructor(readonly times: TimeReader) {}

  /** Reads a line: true if it has a value for each column. A line `#Fields:` names the columns, and is no call. Times are in UTC. */
  read(line: string): boolean {
    if (line.startsWith('#')) {
      const [, names] = /^#Fields:\s*(.*)/i.exec(line) ?? []
      this.#columns = names?.toLowerCase().trim().split(/\s+/) ?? this.#columns
      return false
    }
    const values = line.split(/[\t ]/)
    if (values.length !== this.#columns.length) return false
    this.#values = values
    this.time = this.times.read(`${this.#at('date') ?? ''} ${this.#at('time') ?? ''}`)
    return true
  }

  /** How long the call took, in microseconds. CloudFront writes seconds with a fraction, and IIS whole milliseconds. */
  get duration(): number {
    const text = this.part('duration')
    return microseconds(text, text?.includes('.') ? 's' : 'ms')
  }

  /** A part of the line that was read last, by the columns that may have it; for a `field:`, by the column of that name. */
  part(name: string): string | undefined {
    const [, kind, fieldName = ''] = /^(header|field):(.*)/.exec(name) ?? []
    const columns = kind ? [kind === 'field' ? fieldName : `cs(${fieldName})`] : (COLUMNS[name] ?? [])
    const text = columns.map((column) => this.#at(column)).find((value) => value !== undefined)
    if (name === 'forwarded') return text?.replace(/\+|%20/g, ' ') // as IIS and CloudFront write a space
    return name === 'path' ? pathIn(text) : text
  }

  /** The value in a column; undefined where there is none. */
  #at(column: string): string | undefined {
    return given(this.#values[this.#columns.indexOf(column.toLowerCase())])
  }
}
