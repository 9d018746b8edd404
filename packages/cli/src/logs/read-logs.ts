import { type Call, type CallOptions, CallReader } from './calls.js'
import { detect, type Detected } from './detect.js'
import type { Fields } from './format.js'
import { Ledger, type SkipReason } from './ledger.js'
import { LineSplitter } from './lines.js'
import { merge, Sorter } from './order.js'
import { withoutColours } from './wrappers.js'

/** A log: its name, and its bytes, unpacked. */
export interface LogSource {
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface ReadOptions extends CallOptions {
  /** The format of the lines; found from the first 1,000 lines if left out. */
  readonly format?: string | undefined
  /** Places of fields in lines of JSON: `{ ip: 'request.client_ip' }`. */
  readonly fields?: Fields | undefined
  /**
   * How far back times may run, in milliseconds.
   * @default 5000
   */
  readonly skewMs?: number | undefined
  /** Ends the reading: what was read until then counts. */
  readonly signal?: AbortSignal | undefined
}

/** Logs that are being read. */
export interface Reading {
  readonly ledger: Ledger
  /** The unit of the times, in microseconds: of several logs the coarsest. */
  readonly resolution: number
  /** Whether a log says how long its calls took. */
  readonly hasDurations: boolean
  /** The format of each log, by its name. */
  readonly formats: ReadonlyMap<string, string>
  /** The calls of all logs, in the order of their logged times. */
  readonly batches: AsyncIterable<Call[]>
}

/**
 * Opens logs, whose formats it finds, and reads their calls.
 * @throws {NoLogError} for a log that is none.
 */
export async function readLogs(sources: readonly LogSource[], options: ReadOptions): Promise<Reading> {
  const ledger = new Ledger()
  const logs = sources.map((source) => new Log(source, options, ledger))
  for (const log of logs) await log.open()
  const opened = logs.filter(({ detected }) => detected !== undefined)
  const units = opened.map(({ detected }) => detected!.resolution)
  return {
    ledger,
    resolution: Math.max(1, ...units),
    hasDurations: opened.some(({ detected }) => detected!.hasDurations),
    formats: new Map(opened.map(({ name, detected }) => [name, titleOf(detected!)])),
    batches: opened.length === 1 ? opened[0]!.batches() : merge(opened.map((log) => log.batches())),
  }
}

function titleOf({ format, wrapper }: Detected): string {
  return wrapper.name === '' ? format.name : `${format.name} in ${wrapper.name}`
}

/** The parts of calls that have to be in a log. */
function needsOf({ selectors, cost }: CallOptions): string[] {
  return [...new Set(selectors.map(({ by = 'ip' }) => by)), ...(cost === undefined ? [] : [cost])]
}

/** One log. */
class Log {
  readonly name: string
  detected: Detected | undefined
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #options: ReadOptions
  readonly #ledger: Ledger
  readonly #splitter: LineSplitter
  readonly #sorter: Sorter<Call>
  #first: string[] = []
  #lines = 0
  #hasBegun = false
  #hasEnded = false

  constructor({ name, chunks }: LogSource, options: ReadOptions, ledger: Ledger) {
    this.name = name
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#options = options
    this.#ledger = ledger
    this.#sorter = new Sorter((options.skewMs ?? 5000) * 1000)
    this.#splitter = new LineSplitter((reason, text) => this.#refuse(reason, text))
  }

  /** Reads the first lines and finds the format by them. A log without a line has none. */
  async open(): Promise<void> {
    for (let lines = await this.#next(); lines; lines = await this.#next()) {
      for (const line of lines) this.#first.push(line)
      if (this.#first.length >= SAMPLE) break
    }
    const sample = this.#first.slice(0, SAMPLE).filter((line) => line !== '')
    if (sample.length === 0) return
    const { format, fields = {} } = this.#options
    this.detected = detect(this.name, sample, { format, fields, needs: needsOf(this.#options) })
  }

  /** The calls, in order of time as far as that is possible. */
  async *batches(): AsyncGenerator<Call[]> {
    const reader = new CallReader(this.detected!, this.#options)
    for (let lines: string[] | undefined = this.#first; lines; lines = await this.#next()) {
      for (const line of lines) this.#readLine(reader, line)
      yield this.#sorter.due()
    }
    yield this.#sorter.end()
  }

  #readLine(reader: CallReader, line: string): void {
    const ledger = this.#ledger
    const { wrapper } = this.detected!
    ledger.lines++
    const number = ++this.#lines
    const inner = line === '' ? '' : wrapper.unwrap(line)
    const call = this.#callOf(reader, inner, line)
    if (call === 'outside') {
      ledger.read++
      ledger.outside++
    } else if (typeof call === 'string') ledger.skip(call, line, this.name, number)
    else if (this.#sorter.add(call)) ledger.read++
    else ledger.skip('clock ran back', line, this.name, number)
  }

  #callOf(reader: CallReader, inner: string | undefined, line: string): ReturnType<CallReader['read']> {
    if (inner === '') return line === '' ? 'empty line' : 'part of a line'
    if (line.startsWith('#')) return 'comment line'
    const isRead = inner !== undefined && this.detected!.format.read(withoutColours(inner))
    return isRead ? reader.read() : 'not in the format'
  }

  /** The lines that the next bytes complete; undefined at the end. A source that fails ends there, unless it fails at once. */
  async #next(): Promise<string[] | undefined> {
    if (this.#hasEnded || this.#options.signal?.aborted) return undefined
    try {
      const { done, value } = await this.#chunks.next()
      this.#hasBegun = true
      if (!done) return this.#splitter.push(value)
      this.#hasEnded = true
      return this.#splitter.end()
    } catch (error) {
      this.#hasEnded = true
      if (this.#options.signal?.aborted) return undefined
      if (!this.#hasBegun) throw error
      const { lines } = this.#ledger
      const [rest] = this.#splitter.end() // which counts what it refuses
      if (this.#ledger.lines === lines) this.#refuse('cut off', rest ?? (error as Error).message)
      return []
    }
  }

  #refuse(reason: SkipReason, text: string): void {
    this.#ledger.lines++
    this.#ledger.skip(reason, text, this.name, ++this.#lines)
  }
}

const SAMPLE = 1000
