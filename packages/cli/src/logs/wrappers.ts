import { jsonOf } from './format.js'
import { textAt } from './json-format.js'

/*
 * The carriers of a log's lines: the drivers of containers and the journals of systems.
 */

/** Takes the lines of a log out of another. */
export interface Wrapper {
  readonly name: string
  /** The line inside; undefined if this is no line of the wrapper. A part of a line that goes on is ''. */
  unwrap(line: string): string | undefined
}

/** The wrappers, made for each log, as some keep a part of a line until its end comes. The last one wraps nothing. */
export function wrappers(): readonly Wrapper[] {
  const [docker, cri] = [new Joiner(), new Joiner()]
  return [
    {
      name: 'docker', // which splits lines at 16 KiB: only the last part ends in \n
      /** The text in a line of Docker's JSON; '' for a part of a line that goes on, undefined for any other line. */
      unwrap(line) {
        const { log, stream } = (line.startsWith('{"log":') && jsonOf(line)) || {}
        if (typeof log !== 'string') return undefined
        return docker.add(stream, log.replace(/\r?\n$/, ''), log.endsWith('\n'))
      },
    },
    {
      name: 'cri', // of Kubernetes: a time, the stream, `P` for a part of a line or `F` for its end, and the text
      unwrap(line) {
        const [, stream, tag, part] = CRI.exec(line) ?? []
        return part === undefined ? undefined : cri.add(stream, part, tag === 'F')
      },
    },
    { name: 'syslog', unwrap: (line) => SYSLOG.exec(line)?.[1] },
    ...PREFIXES.map(({ name, form }) => ({ name, unwrap: (line: string) => form.exec(line)?.[1] })),
    { name: 'a field of JSON', unwrap: inField },
    { name: '', unwrap: (line) => line },
  ]
}

/** The line in a field of a line of JSON, as journald, fluent-bit, Loki, pino and clouds write it; undefined without such a field. */
function inField(line: string): string | undefined {
  const value = jsonOf(line) ?? {}
  const { MESSAGE: bytes } = value
  if (Array.isArray(bytes) && typeof bytes[0] === 'number')
    return DECODER.decode(Uint8Array.from(bytes)).trimEnd()
  const field = ['MESSAGE', 'log', 'line', 'msg', 'message', '@message', 'textPayload'].find((name) =>
    textAt(value, name),
  )
  return field === undefined ? undefined : textAt(value, field)?.trimEnd()
}

/** journald has a text with an escape, or that is no UTF-8, as a list of its bytes. */
const DECODER = new TextDecoder()

const CRI = /^\d{4}-\d\d-\d\dT\S+ (stdout|stderr) ([FP])(?::\S+)? (.*)$/s

const STAMP = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`

/** The words that commands put in front of lines, by command; a time may stand behind those of most. */
const PREFIXES = Object.entries({
  timestamps: `${STAMP}:?`, // docker, kubectl
  'kubectl --prefix': String.raw`\[pod\/\S+\](?: ${STAMP})?`,
  pm2: String.raw`(?:${STAMP.replace('[T ]', '[T -]')}:? )?\d+\|[^|]{1,64}\|(?: ${STAMP}:)?`,
  compose: String.raw`[\w.@-]+ *\|(?: ${STAMP})?`,
  heroku: String.raw`${STAMP} app\[[\w.-]+\]:`,
  logcli: String.raw`${STAMP} \{[^}]*\}`,
  stern: String.raw`(?:[a-z\d-]+ )?[a-z][a-z\d.-]*-[a-z\d]+ (?=[\d-]*[a-z])[a-z\d-]+(?: ${STAMP})?`,
  'aws logs': String.raw`${STAMP} \S+`,
}).map(([name, form]) => ({ name, form: new RegExp(`^${form} (.+)$`, 's') }))

/** `<190>Oct 11 22:14:15 host nginx[7]: line`, RFC 5424, and what `journalctl` prints, with times of any form. */
const SYSLOG =
  /^(?:(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} \d{4}-\d\d-\d\d [\d:.]+ \S+) \S+ [^\s:[]+(?:\[\d+\])?:|<\d{1,3}>1 \S+ \S+ \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\\]|\\.)*\])+)) (?:\ufeff)?(.+)$/s

/** Joins the parts of lines, of which each stream may have one that goes on. */
class Joiner {
  /** Of stdout and of stderr. */
  readonly #parts = ['', '']

  /** Adds a part of a line. Returns '' until the last part, and then the whole line; of a line above 256 KiB, parts are left out. */
  add(stream: unknown, part: string, isLast: boolean): string {
    const place = stream === 'stderr' ? 1 : 0
    const whole = this.#parts[place]! + part
    this.#parts[place] = isLast ? '' : whole.slice(0, LONGEST)
    return isLast ? whole : ''
  }
}

const LONGEST = 2 ** 18

// oxlint-disable-next-line no-control-regex -- the escape character begins a colour
const COLOURS = /\u001b\[[\d;]*[A-Za-z]/g

/** The line without the codes of colours. */
export function withoutColours(line: string): string {
  return line.includes('\u001b') ? line.replace(COLOURS, '') : line
}
