import { type Format, type FormatOpener, given, microseconds, requestPart } from './format.js'
import type { TimeReader } from './times.js'

/*
 * Formats of text, each one regular expression whose groups are parts of the call.
 */

/**
 * Each with the names of the groups. Those that begin with `duration` add up to it, in seconds; without one, the time is that
 * of the beginning, or is not known.
 */
const PATTERNS = [
  {
    // Apache, nginx and Traefik, common and combined, with a virtual host in front or X-Forwarded-For and a duration behind,
    // which ingress-nginx has as the second number.
    name: 'common',
    pattern:
      /^(?:([^\s:]+)(?::\d+)? (?=[\da-fA-F]*[.:]\S* \S+ ))?(\S+) \S+ [^[]*\[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}|-) (?:\d+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"(?: "([^"]*)")?(?:(?:.*\b(?:rt|request_time)[=:]"?| \d+ (?=[\d.]+ \[))([\d.]+))?)?/,
    groups: 'host ip time request status header:referer header:user-agent forwarded duration',
  },
  {
    // The load balancer of AWS for applications: a part of the duration that did not happen is -1.
    name: 'alb',
    pattern:
      /^(?:https?|h2|grpcs|wss?) (\d{4}-\S+Z) \S+ (\S+):\d+ \S+ (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (\d{3}|-) \S+ \d+ \d+ "(\S+ (?:\w+:\/\/([^:/ ]+))?[^"]*)" "([^"]*)"/,
    groups: 'time ip duration:1 duration:2 duration:3 status request host header:user-agent',
  },
  {
    // Envoy's own format, and Istio's. The time is that of the beginning; addresses are those of X-Forwarded-For,
    // and where Istio has none of the connection.
    name: 'envoy',
    pattern:
      /^\[(\d{4}-\S+)\] "([^"]*)" (\d{3}|0) \S+ (?:\S+ \S+ "[^"]*" )?\d+ \d+ \d+ \S+ "(?:([^"]*),\s*)?([^",]*)" "([^"]*)" "[^"]*" "([^"]*)"(?: "[^"]*" \S+ \S+ \S+ (\S+):\d+ )?/,
    groups: 'time request status forwarded ip header:user-agent host peer',
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
  readonly #durations: readonly string[]
  #found: readonly (string | undefined)[] = []

  /**
   * A format of text by `pattern`: its regular expression, and the names of what its groups hold, in their order. Groups
   * whose names begin with 'duration' add up to the duration of the call. `times` parses the logged time.
   */
  constructor(
    readonly pattern: (typeof PATTERNS)[number],
    readonly times: TimeReader,
  ) {
    this.name = pattern.name
    const groups = pattern.groups.split(' ')
    this.#groups = new Map(groups.map((group, i) => [group, i + 1]))
    this.#durations = groups.filter((group) => group.startsWith('duration'))
  }

  /**
   * Reads a line, and returns whether it is in the format. If it is, `part` returns its parts, and `time` is its time in
   * microseconds since 1970, or NaN if it is not readable.
   */
  read(line: string): boolean {
    const found = this.pattern.pattern.exec(line)
    if (!found) return false
    this.#found = found
    this.time = this.times.read(this.part('time')!)
    return true
  }

  /** How long the call of the line took, in microseconds: the sum of all groups that hold a part of it; 0 where none does. */
  get duration(): number {
    return this.#durations.reduce((sum, group) => sum + microseconds(this.part(group)), 0)
  }

  /**
   * A part of the line that was read last, such as 'status'; undefined where the format or the line has none. Method and
   * path are cut out of the request line. Parts named `header:NAME` are headers. The header X-Forwarded-For is also a
   * part of its own, 'forwarded', so the group of that name holds it under both names. For 'ip', the address of the
   * connection (`peer`) stands in where the line names no caller.
   */
  part(name: string): string | undefined {
    if (name === 'method' || name === 'path') return requestPart(this.part('request'), name)
    const text = given(this.#found[this.#groups.get(name === 'header:x-forwarded-for' ? 'forwarded' : name)!])
    return name === 'ip' ? (text ?? this.part('peer')) : text
  }
}
