import type { Format, FormatOpener } from './format.js'
import { given, jsonOf, methodIn, microseconds, pathIn } from './format.js'
import type { FieldNames, ReadOptions } from './read-options.js'
import type { TimeReader } from './times.js'

/*
 * Lines of JSON of any writer: the paths of the time, the caller and the rest are looked for in the first lines, under
 * the names that nginx, Envoy, Caddy, Traefik, loggers and clouds use, the likeliest first.
 */

const PATHS: Readonly<Record<string, string>> = {
  time: 'start_time StartUTC EdgeStartTimestamp time_iso8601 @timestamp msec ts timestamp time time_local requestTime datetime date',
  ip: `request.client_ip request.remote_ip client_ip clientIp ClientHost remote_addr remote_ip remoteIp httpRequest.remoteIp
    req.ip req.remoteAddress remoteAddress client.ip source.ip meta.req.ip ip downstream_remote_address remoteAddr client`,
  forwarded:
    'http_x_forwarded_for x_forwarded_for xff request.headers.X-Forwarded-For req.headers.x-forwarded-for',
  status:
    'status response_code response_status DownstreamStatus EdgeResponseStatus statusCode status_code res.statusCode res.status response.status httpRequest.status http.response.status_code meta.res.statusCode',
  method:
    'method request_method request.method RequestMethod req.method ClientRequestMethod httpMethod httpRequest.requestMethod http.request.method meta.req.method verb request',
  path: 'path request_uri request.uri RequestPath req.url ClientRequestURI resourcePath uri url httpRequest.requestUrl url.path url.original meta.req.url request',
  host: 'host http_host request.host RequestHost ClientRequestHost authority req.headers.host req.host url.domain meta.req.headers.host server_name',
  duration: 'request_time responseTime meta.responseTime duration_ms elapsed_ms duration',
  id: 'reqId req.id requestId request_id',
}

/** The names that `--field` takes. */
export const FIELD_NAMES: readonly string[] = Object.keys(PATHS)

/** Lines with a caller and a status that are no calls, by the program that writes them and beside the line of each call. */
const NO_CALLS: Readonly<Record<string, (line: JsonLine) => boolean>> = {
  'an error of Caddy': ({ logger }) => typeof logger === 'string' && /^http\.(?!log\.access)/.test(logger),
  'an error of Fastify': (line) => 'reqId' in line && 'err' in line && !('responseTime' in line),
}

/** The objects that hold headers, and the prefixes of names that stand for them. */
const HEADERS = ['request.headers.', 'req.headers.', 'headers.', 'http_', 'request_', '']

type JsonLine = Readonly<Record<string, unknown>>

export const json: FormatOpener = {
  name: 'json',
  /** Opens the format for a log, whose first lines are `sample`; lines of it that are not JSON are left out. */
  open(times, sample, options) {
    const lines = sample.map(jsonOf).filter((line) => line !== undefined)
    return new JsonFormat(times, lines, options)
  },
}

class JsonFormat implements Format {
  readonly name = 'json'
  time = NaN
  group = ''
  joined = ''
  #line: JsonLine = {}
  /** The first line of the call, where the line that was read last has its answer. */
  #request: JsonLine = {}
  /** Lines with a caller that wait for their answers, by id. */
  readonly #firstHalves = new Map<
    string,
    { readonly line: JsonLine; readonly group: string; readonly time: number }
  >()
  readonly #paths = new Map<string, string | undefined>()
  readonly #fields: FieldNames
  readonly #callerParts: readonly string[]
  /** The lines in which paths are looked for: at last those of the sample that are calls, or halves of them. */
  #lines: readonly JsonLine[]
  readonly #hasDurations: boolean
  /** Whether lines of calls have an answer, a status or a duration, and whether that may be another line than that with the caller. */
  readonly #hasAnswers: boolean
  readonly #isInHalves: boolean

  /**
   * Finds in `sample`, the first lines of the log, at which paths the parts of a call are; `fields` are paths that the user named.
   * A duration is used if its unit is known, and if the logged time is that of the call's end: the duration then leads back to its
   * start.
   */
  constructor(
    readonly times: TimeReader,
    readonly sample: readonly JsonLine[],
    { fields = {}, selectors }: ReadOptions,
  ) {
    this.#fields = fields
    this.#callerParts = selectors.flatMap(({ by = 'ip', orAddress }) => (orAddress ? [by, 'ip'] : [by]))
    // Paths are looked for in `#lines`, which loses lines of other things step by step: their fields may have the same names.
    this.#lines = sample
    const isTimeOfStart = /start/i.test(this.#pathOf('time') ?? '')
    // A `duration` without a unit is in seconds where Caddy writes it, and in an unknown unit elsewhere.
    const isOfCaddy = this.#pathOf('ip')?.startsWith('request.') === true
    this.#lines = this.#linesAboutCallers(sample)
    const isUnitKnown = this.#pathOf('duration') !== 'duration' || 'duration' in fields || isOfCaddy
    this.#hasDurations = isUnitKnown && !isTimeOfStart
    const lines = this.#lines.map((line): SampledLine => {
      const [hasCaller, hasAnswer] = [this.#hasAny(line, this.#callerParts), this.#hasAny(line, ANSWER_PARTS)]
      return { line, id: this.#callIdOf(line), hasCaller, hasAnswer }
    })
    this.#hasAnswers = lines.some(({ hasAnswer }) => hasAnswer)
    this.#isInHalves = areInHalves(lines)
    const isCallerEnough = this.#isInHalves || !this.#hasAnswers
    this.#lines = lines
      .filter(({ hasCaller, hasAnswer }) => hasAnswer || (hasCaller && isCallerEnough))
      .map(({ line }) => line)
  }

  /** The lines with a caller, and those with the id of such a line, which may have its answer. */
  #linesAboutCallers(lines: readonly JsonLine[]): readonly JsonLine[] {
    const hasCaller = (line: JsonLine): boolean => this.#hasAny(line, this.#callerParts)
    const callerIds = new Set(lines.filter(hasCaller).map((line) => this.#callIdOf(line)))
    callerIds.delete('')
    return lines.filter((line) => hasCaller(line) || callerIds.has(this.#callIdOf(line)))
  }

  /**
   * Reads a line; `part`, `time` and `duration` then describe it. Returns false, and keeps the line before, if the line is not
   * JSON; and 'no call' if it lacks an answer where others have one, or if its program writes another line for the call. If calls
   * are in two lines, the first is 'half of a call' and waits for the second, which is 'joined'.
   */
  read(line: string): ReturnType<Format['read']> {
    const value = jsonOf(line)
    if (value === undefined) return false
    this.#line = value
    this.#request = {}
    this.time = this.times.read(this.part('time') ?? '')
    const [hasCaller, hasAnswer] = [this.#hasAny(value, this.#callerParts), this.#hasAny(value, ANSWER_PARTS)]
    const noCall = Object.keys(NO_CALLS).find((name) => NO_CALLS[name]!(value))
    const names = [...this.#callerParts, ...ANSWER_PARTS].filter((name) => this.#hasAny(value, [name]))
    this.group =
      noCall ??
      ([...new Set(names.map((name) => this.#pathOf(name)))].join(' + ') || 'neither caller nor answer')
    if (noCall !== undefined) return 'no call'
    const isHalf = this.#isInHalves && hasCaller !== hasAnswer
    if (!isHalf) {
      const isCall = this.#hasAnswers ? hasAnswer : hasCaller
      return isCall || 'no call'
    }
    const id = this.#callIdOf(value)
    const firstHalf = this.#firstHalves.get(id)
    this.#firstHalves.delete(id)
    if (hasCaller) {
      if (id !== '' && line.length <= LONGEST_WAITING)
        this.#firstHalves.set(id, { line: value, group: this.group, time: this.time })
      this.#forgetOld()
      return 'half of a call'
    }
    if (firstHalf === undefined) return true
    this.#request = firstHalf.line
    this.joined = firstHalf.group
    return 'joined'
  }

  /** Forgets lines that wait for their answers: the oldest beyond 10,000, and those ten minutes older than the line read last. */
  #forgetOld(): void {
    for (const [id, { time }] of this.#firstHalves) {
      if (this.#firstHalves.size <= MOST_WAITING && !(time < this.time - LONGEST_WAIT_US)) break
      this.#firstHalves.delete(id)
    }
  }

  /** Whether a line has one of these parts. */
  #hasAny(line: JsonLine, names: readonly string[]): boolean {
    return names.some((name) => textAt(line, this.#pathOf(name) ?? '') !== undefined)
  }

  /** The id that the two lines of a call share, with host and process, since ids are those of one process. '' without an id. */
  #callIdOf(line: JsonLine): string {
    const id = textAt(line, this.#pathOf('id') ?? '')
    return id === undefined ? '' : [line['hostname'], line['pid'], id].join(' ')
  }

  /**
   * How long the call of the line took, in microseconds; 0 where the log has no duration to use. The unit is what the
   * field's name ends with, such as `duration_ms` or `durationMs`; `responseTime` is in milliseconds, any other in seconds.
   */
  get duration(): number {
    const path = this.#pathOf('duration')
    if (!this.#hasDurations || path === undefined) return 0
    const hasUnit = /(?:\b|_)[mun]s$|[a-z\d][MUN]s$/.test(path)
    const unit = path.endsWith('responseTime') ? 'ms' : hasUnit ? path.slice(-2).toLowerCase() : undefined
    return microseconds(textAt(this.#line, path), unit)
  }

  /**
   * A part of the line's call as text, such as 'ip' or 'status'; undefined if the line, or the first line of the call, has none.
   * Some logs have one field for a whole request line, such as `GET /path HTTP/1.1`, out of which method and path are cut.
   */
  part(name: string): string | undefined {
    const path = this.#pathOf(name)
    const isHeader = name === 'forwarded' || name.startsWith('header:')
    const textIn = isHeader ? headerAt : textAt
    const text = path === undefined ? undefined : (textIn(this.#line, path) ?? textIn(this.#request, path))
    if (name === 'path') return pathIn(text)
    return name === 'method' && path === 'request' ? methodIn(text) : text
  }

  /** The path of a part of the call, as the user named it or the sample has it; undefined if no line of the sample has one. */
  #pathOf(name: string): string | undefined {
    if (!this.#paths.has(name)) this.#paths.set(name, this.#fields[name] ?? this.#findPath(name))
    return this.#paths.get(name)
  }

  /**
   * Finds the path of a part in the first lines, among the paths that loggers use for it: the first that more than half of the
   * lines have, otherwise the most frequent. A line counts if its value at the path looks like the part: like a time, a status or a
   * method. `field:PATH` names the path itself. Undefined for a part that no logger has.
   */
  #findPath(name: string): string | undefined {
    if (name.startsWith('field:')) return name.slice('field:'.length)
    const [, header] = /^header:(.+)/.exec(name) ?? []
    const paths = header ? HEADERS.map((prefix) => prefix + header) : (PATHS[name]?.split(/\s+/) ?? [])
    const isUseful = (text = ''): boolean =>
      text !== '' &&
      (name === 'time' ? !Number.isNaN(this.times.read(text)) : LOOKS[name]?.test(text) !== false)
    const counts = paths.map((path) => this.#lines.filter((line) => isUseful(textAt(line, path))).length)
    const ofMostLines = counts.findIndex((count) => count * 2 > this.#lines.length)
    const mostFrequent = counts.indexOf(Math.max(1, ...counts))
    return paths[ofMostLines >= 0 ? ofMostLines : mostFrequent]
  }
}

/** A line of a log's beginning, and what it has of a call. */
interface SampledLine {
  readonly line: JsonLine
  /** '' without an id. */
  readonly id: string
  readonly hasCaller: boolean
  readonly hasAnswer: boolean
}

/** Whether calls are in two lines: one has the caller and no answer, another the answer and no caller, and both the same id. */
function areInHalves(lines: readonly SampledLine[]): boolean {
  const unanswered = lines.filter(({ id, hasCaller, hasAnswer }) => id && hasCaller && !hasAnswer)
  const unansweredIds = new Set(unanswered.map(({ id }) => id))
  return lines.some(({ id, hasCaller, hasAnswer }) => hasAnswer && !hasCaller && unansweredIds.has(id))
}

/** How a part looks whose names applications use for other things too. */
const LOOKS: Readonly<Record<string, RegExp>> = {
  status: /^\d{1,3}$/,
  method: /^(?:[A-Z]+|get|head|post|put|patch|delete|options)(?: |$)/,
}

/** The parts that only the line with a call's answer has. */
const ANSWER_PARTS = ['status', 'duration']

/** Of lines with a caller at most so many wait for their answers, each so long at most, and for ten minutes of the log. */
const MOST_WAITING = 10_000
const LONGEST_WAITING = 8192
const LONGEST_WAIT_US = 600e6

/**
 * The value at a path of a parsed line, as text: a text or a number, or the first element of a list. Undefined for any
 * other value, and for '-' and the empty text, which logs write for a field without a value.
 */
export function textAt(line: JsonLine, path: string): string | undefined {
  const found = valueAt(line, path)
  const value = Array.isArray(found) ? (found[0] as unknown) : found
  return typeof value === 'string' ? given(value) : typeof value === 'number' ? String(value) : undefined
}

/** The value of a header, as text: Caddy writes the lines of a header as a list, which is joined by commas. */
function headerAt(line: JsonLine, path: string): string | undefined {
  const found = valueAt(line, path)
  return Array.isArray(found) ? given(found.join(', ')) : textAt(line, path)
}

/**
 * The value at a path such as `request.headers.host`. It is that of a field with this whole name, in any case and with `_` for `-`.
 * Without such a field, the name up to the first dot leads to an object, in which the rest of the path is looked for. Undefined if
 * there is none.
 */
function valueAt(line: JsonLine, path: string): unknown {
  if (Object.hasOwn(line, path)) return line[path]
  const foldedPath = folded(path)
  const name = Object.keys(line).find((key) => key.length === path.length && folded(key) === foldedPath)
  if (name !== undefined) return line[name]
  const dot = path.indexOf('.')
  const inner = dot < 0 ? undefined : (line[path.slice(0, dot)] as JsonLine | undefined)
  return typeof inner === 'object' && inner ? valueAt(inner, path.slice(dot + 1)) : undefined
}

/** A name of a field as it is compared: in lower case, and with `-` for `_`, as `User-Agent` and `user_agent` are one header. */
const folded = (name: string): string => name.toLowerCase().replaceAll('_', '-')
