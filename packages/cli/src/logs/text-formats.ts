import { type Format, type FormatOpener, given, microseconds, requestPart } from './format.js'
import type { TimeReader } from './times.js'

/*
 * Formats of text, each one regular expression whose groups are parts of the call.
 */

/**
 * Each with the names of the groups, and those that add up to the duration in seconds. Without one, the time is that of the
 * beginning, or is not known.
 */
const PATTERNS = [
  {
    // Apache, nginx and Traefik, common and combined, with a virtual host in front or X-Forwarded-For and a duration behind.
    name: 'common',
    pattern:
      /^(?:([^\s:]+)(?::\d+)? (?=[\da-fA-F]*[.:]\S* \S+ ))?(\S+) \S+ [^[]*\[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}|-) (?:\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"(?: "([^"]*)")?(?:.*\b(?:rt|request_time)[=:]"?([\d.]+))?)?/,
    groups: 'host ip time request status header:referer header:user-agent forwarded duration',
    durations: ['duration'],
  },
  {
    // The load balancer of AWS for applications: a part of the duration that did not happen is -1.
    name: 'alb',
    pattern:
      /^(?:https?|h2|grpcs|wss?) (\d{4}-\S+Z) \S+ (\S+):\d+ \S+ (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (\d{3}|-) \S+ \d+ \d+ "(\S+ (?:\w+:\/\/([^:/ ]+))?[^"]*)" "([^"]*)"/,
    groups: 'time ip first second third status request host header:user-agent',
    durations: ['first', 'second', 'third'],
  },
  {
    // Envoy's own format, and Istio's. The time is that of the beginning; addresses are those of X-Forwarded-For.
    name: 'envoy',
    pattern:
      /^\[(\d{4}-\S+)\] "([^"]*)" (\d{3}|0) \S+ (?:\S+ \S+ "[^"]*" )?\d+ \d+ \d+ \S+ "(?:([^"]*),\s*)?([^",]*)" "([^"]*)" "[^"]*" "([^"]*)"/,
    groups: 'time request status forwarded ip header:user-agent host',
    durations: [],
  },
]

export const textFormats: readonly FormatOpener[] = PATTERNS.map((pattern) => ({
  name: pattern.name,
  open: (times) => new TextFormat(pattern, times),
}))

class TextFormat implements Format {
  readonly name: string
  time = NaN
  readonly #groups: ReadonlyMap<string, number>
  #found: readonly (string | undefined)[] = []

  /** `pattern` has the regular expression of the format and the names of its groups in order. */
  constructor(
    readonly pattern: (typeof PATTERNS)[number],
    readonly times: TimeReader,
  ) {
    this.name = pattern.name
    this.#groups = new Map(pattern.groups.split(' ').map((group, i) => [group, i + 1]))
  }

  /** Reads a line, whose parts `part` returns then. Returns whether it is in the format. */
  read(line: string): boolean {
    const found = this.pattern.pattern.exec(line)
    if (!found) return false
    this.#found = found
    this.time = this.times.read(this.part('time')!)
    return true
  }

  get duration(): number {
    return this.pattern.durations.reduce((sum, group) => sum + microseconds(this.part(group)), 0)
  }

  /** A part of the line that was read last; undefined where the format or the line has none. */
  part(name: string): string | undefined {
    if (name === 'method' || name === 'path') return requestPart(this.part('request'), name)
    return given(this.#found[this.#groups.get(name === 'header:x-forwarded-for' ? 'forwarded' : name)!])
  }
}
