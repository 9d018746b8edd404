import { type Duration, PolicyError } from '@sluice/core'
import {
  type DeclarationOf,
  duration,
  func,
  Listeners,
  readOptions,
  sha256,
  warningOnce,
  warnProcess,
  WeakValues,
} from '@sluice/core/internal'
import { createReadStream } from 'node:fs'
import { type PoliciesInForce, problemsInApp, refuse } from './application.js'
import { type PolicyFile, readPolicies, type ReadPolicies } from './policy-file.js'
import { changesAgainst } from './smells.js'

/*
 * A policy file that changes while the service runs. It is read at every beat and compared by its content, so it does not matter
 * how it is replaced: in place, by a rename, or behind the symlinks of a ConfigMap, of which no event of the file system reports
 * all. Another text comes into force once two reads, one beat apart, agree: a file that is being written differs from one read to
 * the next, also where a half of it parses. What is wrong never comes into force, and the last good file stays.
 */

export type { WatchedPolicies }

export interface WatchPoliciesOptions {
  /**
   * The time between two reads, 10ms to 1h. A good file is in force at most twice this time, and two reads, after it was written.
   * @default '1s'
   */
  readonly every?: Duration
  /** Called when another file has come into force, with its digest. What it throws is the warning LISTENER_FAILED. */
  readonly onChange?: (digest: string) => void
  /**
   * Called when a file cannot be read or is refused, once until the reason changes.
   * @default a warning of the process, POLICIES_REFUSED
   */
  readonly onError?: (error: Error) => void
}

/** Where a policy file is: its path, or a function that returns its text or value, for example from a database. */
export type WatchedSource = string | URL | (() => Promise<string | PolicyFile>)

/**
 * Watches a policy file: a text of at most 1 MB at a path, or what a function returns. The first read is in force if it is good.
 * A change under which callers begin anew (other shapes, another `by`) is refused, unless the file names the limiter in `reset`.
 * It keeps no process alive.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION.
 * @example
 * const watched = watchPolicies('policies.json')
 * await watched.ready()
 * app.use(rateLimit({ limits: limitsFrom(watched), store }))
 */
export function watchPolicies(source: WatchedSource, options: WatchPoliciesOptions = {}): WatchedPolicies {
  return new WatchedPolicies(source, options)
}

/** The codes of changes under which no limiter begins anew. */
const KEEPING = new Set(['FALLEN_LIMIT', 'LOST_LIMITER'])

const WATCH = {
  every: duration('10ms', '1h', '1s'),
  onChange: func<NonNullable<WatchPoliciesOptions['onChange']>>(),
  onError: func<NonNullable<WatchPoliciesOptions['onError']>>(),
} satisfies DeclarationOf<WatchPoliciesOptions>

/** A policy file that is watched. */
class WatchedPolicies implements PoliciesInForce {
  readonly #source: WatchedSource
  readonly #every: number
  readonly #listeners = new Listeners<{ onChange: string; onError: Error }>(
    ['onChange', 'onError'],
    warningOnce('watchPolicies'),
  )
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #firstRead: Promise<void>
  /** The file in force. */
  #inForce: ReadPolicies | undefined
  #textInForce: string | undefined
  #digest = ''
  /** The fields that each application gives; undefined where none acts by the file. */
  #fields: ReadonlySet<string> | undefined
  readonly #followers = new WeakValues<() => void>()
  #followed = 0
  /** The text that the last read found; undefined if it failed, or while a read is under way. */
  #textReadLast: string | undefined
  #foundInForceAt = performance.now()
  #errors = 0
  #error: Error | undefined
  /** The message of the error that was reported last; undefined since a read was good. */
  #messageReported: string | undefined

  /** @internal {@link watchPolicies} makes one. */
  constructor(source: WatchedSource, options: WatchPoliciesOptions) {
    this.#source = source
    const { every, onChange, onError } = readOptions(WATCH, options, { what: 'watchPolicies' })
    this.#every = every
    if (onChange) this.#listeners.on('onChange', onChange)
    if (onError) this.#listeners.on('onError', onError)
    this.#firstRead = this.#readSource({ isFirst: true })
    this.#firstRead.catch(() => {}) // who does not wait for it gets the report
  }

  /** Resolves once the first read is in force. @throws {PolicyError} INVALID_OPTION, or the error of the read. */
  ready(): Promise<void> {
    return this.#firstRead
  }

  /** The file in force. @throws {PolicyError} INVALID_OPTION before the first is. */
  get current(): ReadPolicies {
    return this.#inForce ?? this.#throwNotReady() // short, as each decision asks for it
  }

  #throwNotReady(): never {
    const message = 'no policy file is in force yet: await watched.ready()'
    throw new PolicyError('INVALID_OPTION', message, { cause: this.#error })
  }

  /** Milliseconds since a read last found the file in force where it is; before the first since the watch began. */
  get ageMs(): number {
    return performance.now() - this.#foundInForceAt
  }

  /** The first 16 digits of the SHA-256 of the file in force; '' before the first. */
  get digest(): string {
    return this.#digest
  }

  /** How often a file could not be read or was refused, each reason once until it changes. */
  get errors(): number {
    return this.#errors
  }

  /** Why the last read did not come into force; undefined if it did, or if the next read decides. */
  get error(): Error | undefined {
    return this.#error
  }

  follow(changed: () => void): void {
    this.#followers.get(`${this.#followed++}`, () => changed)
  }

  require(fields: readonly string[]): void {
    if (this.#inForce) refuse(problemsInApp(this.#inForce, fields))
    this.#fields = new Set(fields.filter((field) => this.#fields?.has(field) ?? true))
  }

  /** Ends the reads, also one that is under way. The file in force stays. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /**
   * Reads the file, and puts its text into force if the read before found the same text, or if this is the first read of all. The
   * next read begins a beat after this one has ended, however long it takes.
   * @throws {Error} of a read that fails and {PolicyError} of a text that is refused, which are reported too.
   */
  async #readSource({ isFirst } = { isFirst: false }): Promise<void> {
    const startedAt = performance.now()
    try {
      const before = this.#textReadLast
      this.#textReadLast = undefined
      const text = await textOf(this.#source)
      if (this.#isClosed) throw new PolicyError('INVALID_OPTION', 'the watch was closed during the read')
      this.#textReadLast = text
      this.#error = undefined
      if (text === this.#textInForce) this.#messageReported = undefined
      else if (isFirst || text === before) this.#putInForce(text)
      else return // the next read decides
      this.#foundInForceAt = startedAt
    } catch (error) {
      if (!this.#isClosed) this.#report(error as Error)
      throw error
    } finally {
      this.#readAgainLater()
    }
  }

  /** Reads the source again after the option `every`, unless it is closed by then. */
  #readAgainLater(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#readSource().catch(() => {}), this.#every)
    this.#timer.unref()
  }

  /**
   * Puts the text of a policy file into force: followers are called, and listeners of a change.
   * @throws {PolicyError} INVALID_OPTION for a text with errors, for one under which callers begin anew though its `reset` does not
   * name their limiter, and for one that the application cannot act by. The file in force then stays.
   */
  #putInForce(text: string): void {
    const next = readPolicies(text)
    refuse(next.errors)
    const changes = this.#inForce ? changesAgainst(next, this.#inForce) : []
    const resets = changes.filter(({ code, limiter }) => !KEEPING.has(code) && !next.reset.includes(limiter))
    const advice = '; if that is meant, name the limiter in "reset"'
    refuse(resets.map((problem) => ({ ...problem, message: problem.message + advice })))
    if (this.#fields) refuse(problemsInApp(next, [...this.#fields]))
    const isChange = this.#inForce !== undefined
    this.#inForce = next
    this.#textInForce = text
    this.#digest = sha256(new TextEncoder().encode(text)).slice(0, 16)
    this.#messageReported = undefined
    for (const changed of this.#followers.values()) changed()
    if (isChange) this.#listeners.emit('onChange', this.#digest)
  }

  /** Reports an error to listeners, or as a warning of the process without any; unless it was reported last. */
  #report(error: Error): void {
    const isNew = this.#messageReported !== error.message
    this.#error = error
    this.#messageReported = error.message
    if (!isNew) return
    this.#errors++
    if (this.#listeners.heard.onError) this.#listeners.emit('onError', error)
    else warnProcess('POLICIES_REFUSED', `a policy file is not in force: ${error.message}`)
  }
}

const MOST_BYTES = 2 ** 20
/** Most policy files are read at once, and none takes a buffer of the bound. */
const CHUNK_BYTES = 16 * 1024

/** The text of a source. @throws {Error} of the file system or of the function; PolicyError for a file beyond 1 MB. */
async function textOf(source: WatchedSource): Promise<string> {
  if (typeof source === 'function') {
    const file = await source()
    return decodedText(Buffer.from(typeof file === 'string' ? file : JSON.stringify(file)))
  }
  // One byte beyond the bound, so that a file that grows without end is not read to its end.
  const chunks = createReadStream(source, { end: MOST_BYTES, highWaterMark: CHUNK_BYTES })
  return decodedText(Buffer.concat(await chunks.toArray()))
}

/**
 * The text in the bytes of a policy file.
 * @throws {PolicyError} INVALID_OPTION for more than 1 MB; {TypeError} for bytes that are no UTF-8.
 */
function decodedText(bytes: Uint8Array): string {
  if (bytes.length > MOST_BYTES)
    throw new PolicyError('INVALID_OPTION', 'the policy file is larger than 1 MB')
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
}
