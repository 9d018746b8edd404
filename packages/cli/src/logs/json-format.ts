import type { FieldNames, Format, FormatOpener } from './format.js'
import { given, jsonOf, microseconds, requestPart } from './format.js'
import type { TimeReader } from './times.js'

/*
 * Lines of JSON of any writer: the paths of the time, the caller and the rest are looked for in the first lines, under
 * the names that nginx, Envoy, Caddy, Traefik, loggers and clouds use, the likeliest first.
 */

const PATHS: Readonly<Record<string, string>> = {
  time: 'start_time StartUTC time_iso8601 @timestamp msec ts timestamp time time_local datetime date',
  ip: `request.client_ip request.remote_ip client_ip clientIp ClientHost remote_addr remote_ip remoteIp httpRequest.remoteIp
    req.ip req.remoteAddress remoteAddress client.ip ip downstream_remote_address remoteAddr client`,
  forwarded:
    'http_x_forwarded_for x_forwarded_for xff request.headers.X-Forwarded-For req.headers.x-forwarded-for',
  status:
    'status response_code DownstreamStatus statusCode status_code res.statusCode response.status httpRequest.status',
  method:
    'method request_method request.method RequestMethod req.method httpRequest.requestMethod verb request',
  path: 'path request_uri request.uri RequestPath req.url uri url httpRequest.requestUrl request',
  host: 'host http_host request.host RequestHost authority req.headers.host server_name',
  duration: 'request_time responseTime duration_ms elapsed_ms duration',
}

/** The names that `--field` takes. */
export const FIELD_NAMES: readonly string[] = Object.keys(PATHS)

/** The objects that hold headers, and the prefixes of names that stand for them. */
const HEADERS = ['request.headers.', 'req.headers.', 'headers.', 'http_', 'request_', '']

type JsonLine = Readonly<Record<string, unknown>>

export const json: FormatOpener = {
  name: 'json',
  /** Opens the format for a log, whose first lines are `sample`; lines of it that are not JSON are left out. */
  open(times, sample, fields) {
    const lines = sample.map(jsonOf).filter((line) => line !== undefined)
    return new JsonFormat(times, lines, fields)
  },
}

class JsonFormat implements Format {
  readonly name = 'json'
  time = NaN
  #line: JsonLine = {}
  readonly #paths = new Map<string, string | undefined>()
  readonly #hasDurations: boolean

  /**
   * Takes the first lines of the log as a sample, in which it finds where the parts of a call stand. `fields` are places
   * that the user named. A duration is used if its unit is known, and if the logged time is that of the call's end: the
   * duration then leads back to its start.
   */
  constructor(
    readonly times: TimeReader,
    readonly sample: readonly JsonLine[],
    readonly fields: FieldNames,
  ) {
    // A `duration` without a unit is in seconds where Caddy writes it, and in an unknown unit elsewhere.
    const isCaddy = this.#pathOf('ip')?.startsWith('request.') === true
    const isKnown = this.#pathOf('duration') !== 'duration' || 'duration' in fields || isCaddy
    this.#hasDurations = isKnown && !/start/i.test(this.#pathOf('time') ?? '')
  }

  /**
   * Reads a line; `part`, `time` and `duration` then describe it. Returns false, and keeps the line before, if it is not
   * JSON.
   */
  read(line: string): boolean {
    const value = jsonOf(line)
    if (value === undefined) return false
    this.#line = value
    this.time = this.times.read(this.part('time') ?? '')
    return true
  }

  /**
   * How long the call of the line took, in microseconds. It is 0 where the log has no duration to use (`#hasDurations`):
   * where its unit is not known, or where the logged time is already that of the call's start, to which the duration
   * would otherwise lead back. The unit is what the field's name ends with, such as `duration_ms` or `durationMs`;
   * `responseTime` is in milliseconds, and any other field in seconds.
   */
  get duration(): number {
    const path = this.#pathOf('duration')
    if (!this.#hasDurations || path === undefined) return 0
    const hasUnit = /(?:\b|_)[mun]s$|[a-z\d][MUN]s$/.test(path)
    const unit = path === 'responseTime' ? 'ms' : hasUnit ? path.slice(-2).toLowerCase() : undefined
    return microseconds(textAt(this.#line, path), unit)
  }

  /**
   * A part of the line's call as text, such as 'ip' or 'status'; undefined if the line has none. Some logs have one field
   * for a whole request line, such as `GET /path HTTP/1.1`, out of which method and path are cut.
   */
  part(name: string): string | undefined {
    const path = this.#pathOf(name)
    const text = path === undefined ? undefined : textAt(this.#line, path)
    return name === 'path' || (name === 'method' && path === 'request') ? requestPart(text, name) : text
  }

  /**
   * The path in a line, such as `request.uri`, at which a part of the call stands: as the user named it, otherwise found
   * in the sample. It is looked up once for each part. Undefined if no line of the sample has the part.
   */
  #pathOf(name: string): string | undefined {
    if (!this.#paths.has(name)) this.#paths.set(name, this.fields[name] ?? this.#findPath(name))
    return this.#paths.get(name)
  }

  /**
   * Finds the path of a part in the sample of first lines, among the names that loggers use for it: the first of them
   * that more than half of the lines have, else the first that any line has. A time must be readable. `field:PATH` names
   * the path itself.
   */
  #findPath(name: string): string | undefined {
    if (name.startsWith('field:')) return name.slice('field:'.length)
    const [, header] = /^header:(.+)/.exec(name) ?? []
    const paths = header ? HEADERS.map((prefix) => prefix + header) : (PATHS[name]?.split(/\s+/) ?? [])
    const isUseful = (text = ''): boolean =>
      text !== '' && (name !== 'time' || !Number.isNaN(this.times.read(text)))
    const counts = paths.map((path) => this.sample.filter((line) => isUseful(textAt(line, path))).length)
    const best = counts.findIndex((count) => count * 2 > this.sample.length)
    return paths[best >= 0 ? best : counts.findIndex((count) => count > 0)]
  }
}

/**
 * The value at a path of a parsed line, as text: a text or a number, or the first element of a list. Undefined for any
 * other value, and for '-' and the empty text, which logs write for a field without a value.
 */
export function textAt(line: JsonLine, path: string): string | undefined {
  const found = valueAt(line, path)
  const value = Array.isArray(found) ? (found[0] as unknown) : found
  return typeof value === 'string' ? given(value) : typeof value === 'number' ? String(value) : undefined
}

/**
 * The value at a path such as `request.headers.host` in a parsed line; undefined if there is none. First a field of that
 * whole name is looked for, in any case and with `_` for `-`. Otherwise the name up to the first dot leads to an object,
 * in which the rest of the path is looked for.
 */
function valueAt(line: JsonLine, path: string): unknown {
  if (Object.hasOwn(line, path)) return line[path]
  const name = Object.keys(line).find((each) => folded(each) === folded(path))
  if (name !== undefined) return line[name]
  const dot = path.indexOf('.')
  const inner = dot < 0 ? undefined : (line[path.slice(0, dot)] as JsonLine | undefined)
  return typeof inner === 'object' && inner ? valueAt(inner, path.slice(dot + 1)) : undefined
}

/** A name of a field as it is compared: in lower case, and with `-` for `_`, as `User-Agent` and `user_agent` are one header. */
const folded = (name: string): string => name.toLowerCase().replaceAll('_', '-')
