import { copiedText } from '@sluice/core/internal'
import { callReader, type LoggedCall } from './calls.js'
import { detect, type Detected, NoLogError } from './detect.js'
import { HabitsByCaller } from './habits.js'
import { Ledger, type SkipReason } from './ledger.js'
import { type LogLine, LineSplitter, packedBy, refused, textOf } from './lines.js'
import { mergeLogs, Sorter } from './order.js'
import type { ReadOptions } from './read-options.js'
import { withoutColours } from './wrappers.js'

/** A log: its name, and its bytes, unpacked. */
export interface LogSource {
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Logs that are being read. */
export interface Reading {
  readonly ledger: Ledger
  /** What callers with many calls ask for. */
  readonly habits: HabitsByCaller
  /** The unit of the times, in microseconds: of several logs the coarsest. */
  readonly resolution: number
  /** Whether a log says how long its calls took. */
  readonly hasDurations: boolean
  /** Whether each log says which calls were answered 429. */
  readonly hasStatus: boolean
  /** The format of each log, by its name. */
  readonly formats: ReadonlyMap<string, string>
  /** The calls of all logs, in the order of their logged times. */
  readonly batches: AsyncIterable<LoggedCall[]>
}

/**
 * Opens logs, finds the format of each by its first lines, and returns their calls as they are read (`batches`), merged
 * in order of time. The ledger counts all lines; it is complete when the batches have ended. `resolution`, the unit of
 * the times in microseconds, is that of the coarsest log. A log without a line is left out.
 * @throws {NoLogError} for a log that is none.
 */
export async function readLogs(sources: readonly LogSource[], options: ReadOptions): Promise<Reading> {
  const ledger = new Ledger()
  const habits = new HabitsByCaller()
  const logs = sources.map((source) => new Log(source, options, ledger, habits))
  for (const log of logs) await log.open()
  const opened = logs.filter(({ detected }) => detected !== undefined)
  const found = opened.map(({ source, detected }) => ({ name: source.name, ...detected! }))
  return {
    ledger,
    habits,
    resolution: Math.max(1, ...found.map(({ resolution }) => resolution)),
    hasDurations: found.some(({ hasDurations }) => hasDurations),
    hasStatus: found.every(({ hasStatus }) => hasStatus),
    formats: new Map(found.map(({ name, title }) => [name, title])),
    batches: opened.length === 1 ? opened[0]!.batches() : mergeLogs(opened.map((log) => log.batches())),
  }
}

/** One log. */
class Log {
  /** Undefined for a log without a line. */
  detected: Detected | undefined
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #splitter = new LineSplitter()
  readonly #firstLines: LogLine[] = []
  #lines = 0
  #hasBegun = false
  #hasEnded = false

  /** A log that is to be read, by `open` and `batches`. The `ledger` counts the lines of all logs, read or skipped. */
  constructor(
    readonly source: LogSource,
    readonly options: ReadOptions,
    readonly ledger: Ledger,
    readonly habits: HabitsByCaller,
  ) {
    this.#chunks = source.chunks[Symbol.asyncIterator]()
  }

  /**
   * Finds the format of the log by its first lines, which are kept for `batches`: until 1,000 lines with text, 4 MB of text or
   * 100,000 lines in all were read. If no line has text, the first line decides. A log without a line has no format.
   */
  async open(): Promise<void> {
    let size = 0
    for (let lines = await this.#nextLines(); lines; lines = await this.#nextLines()) {
      for (const line of lines) {
        // A copy, as a line that was cut out keeps those around it.
        this.#firstLines.push(isText(line) ? copiedText(line) : line)
        size += textOf(line).length
      }
      const isEnough = this.#firstLines.filter(isText).length >= SAMPLE || size > MOST_SAMPLED
      if (isEnough || this.#firstLines.length > 100 * SAMPLE) break
    }
    const texts = this.#firstLines.filter(isText)
    const sample = texts.length > 0 ? texts.slice(0, SAMPLE) : this.#firstLines.slice(0, 1).map(textOf)
    if (sample.length > 0) this.detected = detect(this.source.name, sample, this.options)
  }

  /**
   * Yields the calls of the log in batches, in order of time. Each line is counted in the ledger as read, or as skipped for a
   * reason. A call that is older than the newest one by more than the allowed skew (`skewMs`) is skipped too ('clock ran back'),
   * because later calls may have been passed on. Read are also calls 'outside' of the span that was asked for, which are not
   * yielded, and the second line of a call, which is 'joined' with its first. A format that mixes several counts each as a group.
   */
  async *batches(): AsyncGenerator<LoggedCall[]> {
    const { ledger, source } = this
    const { format, hasDurations } = this.detected!
    const callOf = callReader(format, hasDurations, this.options, this.habits)
    const sorter = new Sorter((this.options.skewMs ?? 5000) * 1000)
    for (
      let lines: LogLine[] | undefined = this.#firstLines.splice(0);
      lines;
      lines = await this.#nextLines()
    ) {
      for (const line of lines) {
        ledger.lines++
        this.#lines++
        const kind = this.#read(line)
        const call = kind === true || kind === 'joined' ? callOf() : kind
        const result = typeof call !== 'object' || sorter.add(call) ? call : 'clock ran back'
        const isRead = typeof result === 'object' || result === 'outside'
        if (isRead) ledger.read++
        else ledger.skip(result, textOf(line), source.name, this.#lines)
        if (result === 'outside') ledger.outside++
        if (kind === 'joined') ledger.join(format.joined!)
        if (format.group && BY_FORMAT.has(kind)) ledger.group(format.group, isRead)
      }
      yield sorter.takeDue()
    }
    yield sorter.take()
  }

  /**
   * Takes a line out of its wrapper, such as the JSON of Docker, and has the log's format read it. Returns true for a call, 'joined'
   * for a line that completes the call of an earlier line, otherwise the reason to skip the line. A wrapper returns '' for a part of
   * a line that a later part completes.
   */
  #read(line: LogLine): true | 'joined' | SkipReason {
    if (typeof line !== 'string') return line.reason
    const { format, wrapper } = this.detected!
    if (line === '') return 'empty line'
    if (line.startsWith('#')) return format.read(line) ? 'not in the format' : 'comment line' // which may name columns
    const inner = wrapper.unwrap(withoutColours(line))
    if (inner === '') return 'part of a line'
    // A text in JSON shows its colours only now that it is parsed.
    return (
      (inner !== undefined && format.read(inner === line ? line : withoutColours(inner))) ||
      'not in the format'
    )
  }

  /**
   * Reads the next bytes of the source, and returns the lines that end in them; undefined at its end, or after an interruption. If
   * the source fails after its first bytes, it ends there: its unfinished line, or the error, is the last line, as 'cut off'.
   * @throws {Error} of a source that fails at once, with its name; {NoLogError} for a packed file.
   */
  async #nextLines(): Promise<LogLine[] | undefined> {
    if (this.#hasEnded || this.options.signal?.aborted) return undefined
    try {
      const { done, value } = await this.#chunks.next()
      const packed = this.#hasBegun || done ? undefined : packedBy(value)
      if (packed !== undefined)
        throw new NoLogError(`${packed}: unpack it, and give sluice what comes out, on stdin (-)`)
      this.#hasBegun = true
      if (!done) return this.#splitter.push(value)
      this.#hasEnded = true
      return this.#splitter.end()
    } catch (error) {
      this.#hasEnded = true
      if (this.options.signal?.aborted) return undefined
      const { message } = error as Error
      // Defined, not set: that of a browser's error has no setter.
      if (!this.#hasBegun)
        throw Object.defineProperty(error as Error, 'message', { value: `${this.source.name}: ${message}` })
      const [rest = message] = this.#splitter.end()
      return [typeof rest === 'string' ? refused('cut off', rest) : rest]
    }
  }
}

/** The results of `#read` for lines that the format itself has read, and so knows the group of. */
const BY_FORMAT: ReadonlySet<true | string> = new Set([true, 'joined', 'no call', 'half of a call'])
const SAMPLE = 1000
const MOST_SAMPLED = 2 ** 22

const isText = (line: LogLine): line is string => typeof line === 'string' && line !== ''
