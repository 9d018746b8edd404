import { type Format, type FormatOpener, given, methodIn, microseconds, pathIn } from './format.js'
import type { TimeReader } from './times.js'

/*
 * Formats of text, each one regular expression whose groups are parts of the call. The caller is an address by its form, so
 * that no word in front of it, such as the name of a container, is taken for him.
 */

const ADDRESS = String.raw`(?:\d+\.\d+\.\d+\.\d+|\[?[\da-fA-F]*:[\da-fA-F]*:[\da-fA-F:.]*(?:%\w+)?\]?)(?::\d+)?`
const NAME = String.raw`(?!- )[\w.-]+`
/** What is in brackets before the request: the name of a user may have brackets too, and no quote. */
const TIMED = String.raw`\[[^[\]]+\] ?"`
const TEXT = String.raw`"([^"\\]*(?:\\.[^"\\]*)*)"`

/**
 * Each with the names of the groups, and CALLER for the form of callers. Those that begin with `duration` add up to it, in
 * seconds, or in milliseconds if they end with `ms`; without one, the time is that of the beginning, or is not known.
 */
const PATTERNS = [
  {
    // Apache, nginx, lighttpd and Traefik, common and combined, with a virtual host in front or X-Forwarded-For and a duration
    // behind, which ingress-nginx has as the second number. API Gateway of AWS writes no space behind the time.
    name: 'common',
    pattern: String.raw`^(?:(?!CALLER \S+ \S+ ${TIMED})([\w.-]+|[[\da-fA-F:]+\]?)(?::\d+)? (?=CALLER \S+ (?!${TIMED})\S))?(CALLER) \S+ [^[]*(?:(?!${TIMED})\[[^[]*)*\[([^[\]]+)\] ?${TEXT} (\d{3}|-) (?:\d+|-)(?: ${TEXT} ${TEXT}(?: "([^"]*)")?(?:(?:.*\b(?:rt|request_time)[=:]"?| \d+ (?=[\d.]+ \[))([\d.]+))?)?`,
    groups: 'host ip time request status header:referer header:user-agent forwarded duration',
  },
  {
    // The load balancer of AWS for applications: a part of the duration that did not happen is -1.
    name: 'alb',
    pattern: String.raw`^(?:https?|h2|grpcs|wss?) (\d{4}-\S+Z) \S+ (\S+):\d+ \S+ (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (\d{3}|-) \S+ \d+ \d+ "(\S+ (?:\w+:\/\/([^:/ ]+))?[^"]*)" "([^"]*)"`,
    groups: 'time ip duration:1 duration:2 duration:3 status request host header:user-agent',
  },
  {
    // Envoy's own format, and Istio's. The time is that of the beginning; addresses are those of X-Forwarded-For,
    // and where Istio has none of the connection.
    name: 'envoy',
    pattern: String.raw`^\[(\d{4}-\S+)\] "([^"]*)" (\d{3}|0) \S+ (?:\S+ \S+ "[^"]*" )?\d+ \d+ \d+ \S+ "(?:([^"]*),\s*)?([^",]*)" "([^"]*)" "[^"]*" "([^"]*)"(?: "[^"]*" \S+ \S+ \S+ (\S+):\d+ )?`,
    groups: 'time request status forwarded ip header:user-agent host peer',
  },
  {
    // HAProxy's `option httplog`. The time is that of the beginning; a line that is cut has no quote at its end.
    name: 'haproxy',
    pattern: String.raw`^(CALLER) \[(\d\d\/\w{3}\/\d{4}:[\d:.]+)\] \S+ \S+ [-\d/+]+ (\d{3}) \+?\d+ \S+ \S+ \S{4} [\d/+]+ [\d/]+ (?:\{[^}]*\} )*"((?!<BADREQ>)[^"]*)`,
    groups: 'ip time status request',
  },
  {
    // The router of Heroku, as `heroku logs` prints it and as a drain gets it. It adds the caller to X-Forwarded-For.
    name: 'heroku',
    pattern: String.raw`^(?:<\d+>1 )?(\d{4}-\S+) (?:\S+ )?heroku(?:\[router\]:| router -) .*?method=(\S+) path="([^"]*)" host=(\S+) .*?fwd="(?:([^"]*), ?)?([^",]*)".*? service=(\d*)(?:ms)? status=(\d+)`,
    groups: 'time method path host forwarded ip duration:ms status',
  },
  {
    name: 'nginx-proxy-manager',
    pattern: String.raw`^\[([^\]]+)\] (?:\S+ \S+ )?(\d{3}) - (\S+) \S+ (\S+) "([^"]*)" \[Client (CALLER)\](?:.*?\[Sent-to [^\]]*\] "([^"]*)" "([^"]*)")?`,
    groups: 'time status method host path ip header:user-agent header:referer',
  },
  {
    name: 'squid',
    pattern: String.raw`^(\d{9,10}\.\d{3}) +(\d+) (CALLER) \w+\/(\d{3}) \d+ (?!- error:)(\S+ \S+) `,
    groups: 'time duration:ms ip status request',
  },
]

/** Lines of other logs that the programs above write into the same file or stream, and that are no calls. */
const NO_CALLS: readonly RegExp[] = [
  /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[\w+\] /, // nginx, its log of errors
  /^\[\w{3} \w{3} \d\d [\d:.]+ \d{4}\] \[/, // Apache, its log of errors
  /"<BADREQ>"$/, // HAProxy, a connection on which no request came
  / error:transaction-end-before-headers /, // Squid, likewise
  /^\d{4}-\d\d-\d\dT\S+ (?:app|heroku)\[[\w.-]+\]: /, // Heroku, lines of the application beside those of the router, and the reverse
]

/** Forms that lack a caller or a time, by the reason for which they are refused. */
export const REFUSED: readonly (readonly [reason: string, form: RegExp])[] = [
  [
    "lines of morgan's dev and tiny forms have neither caller nor time: log with morgan('combined')",
    /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \S+ (?:\d{3}|-) (?:[\d.]+ ms - \S+|\S+ - [\d.-]+ ms)$/,
  ],
  [
    "lines of morgan's short form have no time: log with morgan('combined')",
    /^\S+ \S+ [A-Z]+ \S+ HTTP\/\S+ (?:\d{3}|-) \S+ - [\d.-]+ ms$/,
  ],
]

export const textFormats: readonly FormatOpener[] = PATTERNS.map(({ name, pattern, groups }) => {
  const [ofAddresses, ofNames] = [ADDRESS, `(?:${ADDRESS}|${NAME})`].map(
    (caller) => new RegExp(pattern.replaceAll('CALLER', caller), 's'),
  ) as [RegExp, RegExp]
  return {
    name,
    open: (times, _, { callers }) =>
      new TextFormat(name, callers === 'names' ? ofNames : ofAddresses, groups.split(' '), times),
  }
})

class TextFormat implements Format {
  time = NaN
  readonly #groups: ReadonlyMap<string, number>
  readonly #durations: readonly (readonly [group: string, unit: string])[]
  #found: readonly (string | undefined)[] = []

  /** `groups` are the names of the groups of the `pattern`, in their order. A group `duration...` has a part of the duration. */
  constructor(
    readonly name: string,
    readonly pattern: RegExp,
    groups: readonly string[],
    readonly times: TimeReader,
  ) {
    this.#groups = new Map(groups.map((group, i) => [group, i + 1]))
    const durations = groups.filter((group) => group.startsWith('duration'))
    this.#durations = durations.map((group) => [group, group.endsWith('ms') ? 'ms' : 's'])
  }

  /** Reads a line: true if it is of the format, 'no call' for a line that the same program writes about other things, else false. */
  read(line: string): boolean | 'no call' {
    const found = this.pattern.exec(line)
    if (!found) return NO_CALLS.some((form) => form.test(line)) && 'no call'
    this.#found = found
    this.time = this.times.read(this.#textOf('time')!)
    return true
  }

  /** How long the call of the line took, in microseconds: the sum of all groups that have a part of the duration; 0 without any. */
  get duration(): number {
    let sum = 0
    for (const [group, unit] of this.#durations) sum += microseconds(this.#textOf(group), unit)
    return sum
  }

  /**
   * A part of the line that was read last, such as 'status'; undefined if it has none. Method and path may be cut out of a request
   * line. The header X-Forwarded-For is the part 'forwarded'. If the line names no caller, 'ip' is the address of the connection
   * (`peer`).
   */
  part(name: string): string | undefined {
    if (name === 'path') return pathIn(this.#textOf(this.#groups.has(name) ? name : 'request'))
    if (name === 'method' && !this.#groups.has(name)) return methodIn(this.#textOf('request'))
    const text = this.#textOf(name === 'header:x-forwarded-for' ? 'forwarded' : name)
    return name === 'ip' ? (text ?? this.#textOf('peer')) : text
  }

  #textOf(group: string): string | undefined {
    return given(this.#found[this.#groups.get(group)!])
  }
}
