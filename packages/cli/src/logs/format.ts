import { pathOf } from '@sluice/http'
import type { SkipReason } from './ledger.js'
import type { ReadOptions } from './read-options.js'
import type { TimeReader } from './times.js'

/** One format of logs. `read` reads a line, and the other members describe that line until the next one is read. */
export interface Format {
  readonly name: string
  /**
   * Whether the line is of this format, or why it is no call: 'no call', or 'half of a call' where another line has its
   * answer. That other line is 'joined', and the call is of both.
   */
  read(line: string): boolean | 'joined' | SkipReason
  /** The fields that the line has, by which lines are counted: `req.remoteAddress + res.statusCode`. */
  readonly group?: string
  /** The group of the line that a 'joined' one completes. */
  readonly joined?: string
  /** The time as it stands in the line, in microseconds; NaN if it is no time. */
  readonly time: number
  /** The part of `time` that the call took before it was logged, in microseconds. */
  readonly duration: number
  /** A part of the call: `ip`, `forwarded`, `method`, `path`, `status`, `host`, `header:NAME`, `field:PATH`. */
  part(name: string): string | undefined
}

/** A format and how it is opened for a log. */
export interface FormatOpener {
  readonly name: string
  open(times: TimeReader, sample: readonly string[], options: ReadOptions): Format
}

/** The object in a line of JSON; undefined if the line is none. A line that does not begin with a brace is not parsed. */
export function jsonOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The text of a field of a log; undefined for '-' and the empty text, which logs write for a field without a value. */
export const given = (text: string | undefined): string | undefined =>
  text === '-' || text === '' ? undefined : text

/** The method in a request line such as `GET /path?query HTTP/1.1`; undefined for a text that does not begin with one. */
export function methodIn(request: string | undefined): string | undefined {
  return METHOD.exec(request ?? '')?.[0]
}

/**
 * The path, without its query, in a request line such as `GET /path?query HTTP/1.1`, or in a URL alone, which may be decoded and
 * have spaces. Undefined if there is none.
 */
export function pathIn(request: string | undefined): string | undefined {
  const url = methodIn(request) === undefined ? request : request!.split(' ', 2)[1]
  return given(url && pathOf(url))
}

const METHOD = /^[A-Za-z][\w-]*(?= )/

/**
 * A length of time as whole microseconds: the number in `text` by its `unit`, which is seconds unless it is 'ms', 'us' or
 * 'ns'. 0 for a text that is no number, and for a negative one.
 */
export function microseconds(text: string | undefined, unit = 's'): number {
  const us = Number(text) * (UNITS[unit] ?? 1e6)
  return us > 0 ? Math.round(us) : 0
}

const UNITS: Readonly<Record<string, number>> = { ms: 1e3, us: 1, ns: 1e-3 }
