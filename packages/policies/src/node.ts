import { type Duration, PolicyError } from '@sluice/core'
import {
  type DeclarationOf,
  duration,
  func,
  read,
  type Settings,
  sha256,
  warnProcess,
} from '@sluice/core/internal'
import { open } from 'node:fs/promises'
import { type PoliciesInForce, refuse } from './application.js'
import { type PolicyFile, readPolicies, type ReadPolicies } from './policy-file.js'
import { changesAgainst } from './smells.js'

/*
 * A policy file that changes while the service runs. It is read at every beat and compared by its content, so it does not matter
 * how it is replaced: in place, by a rename, or behind the symlinks of a ConfigMap, of which no event of the file system reports
 * all. Another text comes into force once two reads, one beat apart, agree: a file that is being written differs from one read to
 * the next, also where a half of it parses. What is wrong never comes into force, and the last good file stays.
 */

export interface WatchPoliciesOptions {
  /**
   * The time between two reads, 10ms to 1h. A good file is in force at most twice this time after it was written.
   * @default '1s'
   */
  readonly every?: Duration
  /** Called when another file has come into force, with its digest. */
  readonly onChange?: (digest: string) => void
  /**
   * Called when a file cannot be read or is refused, once until the reason changes.
   * @default a warning of the process, POLICIES_REFUSED
   */
  readonly onError?: (error: Error) => void
}

/** A policy file that is watched. `current` throws until a file is in force. */
export interface WatchedPolicies extends PoliciesInForce {
  /** Resolves once the first read is in force. @throws {PolicyError} INVALID_OPTION, or the error of the read. */
  ready(): Promise<void>
  /** Milliseconds since a read last found the file in force where it is; before the first since the watch began. */
  readonly ageMs: number
  /** The first 16 digits of the SHA-256 of the file in force; '' before the first. */
  readonly digest: string
  /** How often a file could not be read or was refused, each reason once until it changes. */
  readonly errors: number
  /** Why the last read did not come into force; undefined if it did, or if the next read decides. */
  readonly error: Error | undefined
  /** Ends the reads. The file in force stays. */
  close(): void
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
  return new PolicyWatch(source, options)
}

const WATCH = {
  every: duration('10ms', '1h', '1s'),
  onChange: func<NonNullable<WatchPoliciesOptions['onChange']>>(),
  onError: func<NonNullable<WatchPoliciesOptions['onError']>>(),
} satisfies DeclarationOf<WatchPoliciesOptions>

class PolicyWatch implements WatchedPolicies {
  errors = 0
  error: Error | undefined
  digest = ''
  readonly #options: Omit<Settings<typeof WATCH>, 'every'>
  readonly #checks: ((file: ReadPolicies) => void)[] = []
  readonly #timer: NodeJS.Timeout
  readonly #first: Promise<void>
  #inForce: { readonly text: string; readonly read: ReadPolicies } | undefined
  /** What the last read found; undefined if it failed. */
  #last: string | undefined
  #foundAt = performance.now()
  #isReading = false

  constructor(
    private readonly source: WatchedSource,
    options: WatchPoliciesOptions,
  ) {
    const { every, ...reports } = read(WATCH, options, { what: 'watchPolicies' })
    this.#options = reports
    this.#timer = setInterval(() => void this.#look().catch(() => {}), every)
    this.#timer.unref()
    this.#first = this.#look(true)
    this.#first.catch(() => {}) // who does not wait for it gets the report
  }

  ready(): Promise<void> {
    return this.#first
  }

  get current(): ReadPolicies {
    if (this.#inForce) return this.#inForce.read
    throw new PolicyError('INVALID_OPTION', 'no policy file is in force yet: await watched.ready()', {
      cause: this.error,
    })
  }

  get ageMs(): number {
    return performance.now() - this.#foundAt
  }

  require(check: (file: ReadPolicies) => void): void {
    if (this.#inForce) check(this.#inForce.read)
    this.#checks.push(check)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /**
   * Reads once. Another text than that in force has to be found by two reads, but by the first read of all. A read that takes
   * longer than a beat is waited for. Throws what it reports.
   */
  async #look(isFirst = false): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    const startedAt = performance.now()
    try {
      const before = this.#last
      this.#last = undefined
      const text = await textOf(this.source)
      this.#last = text
      if (text === this.#inForce?.text) this.error = undefined
      else if (isFirst || text === before) this.#take(text)
      else return
      this.#foundAt = startedAt
    } catch (error) {
      this.#report(error as Error)
      throw error
    } finally {
      this.#isReading = false
    }
  }

  /** Puts a text into force. @throws {PolicyError} INVALID_OPTION for one that must not be. */
  #take(text: string): void {
    const next = readPolicies(text)
    refuse(next.errors)
    const lost = this.#inForce ? changesAgainst(next, this.#inForce.read) : []
    const advice = '; if that is meant, name the limiter in "reset"'
    refuse(
      lost
        .filter(
          ({ code, limiter }) =>
            code !== 'FALLEN_LIMIT' && code !== 'LOST_LIMITER' && !next.reset.includes(limiter),
        )
        .map((problem) => ({ ...problem, message: problem.message + advice })),
    )
    for (const check of this.#checks) check(next)
    const isChange = this.#inForce !== undefined
    this.#inForce = { text, read: next }
    this.digest = sha256(new TextEncoder().encode(text)).slice(0, 16)
    this.error = undefined
    if (isChange) this.#options.onChange?.(this.digest)
  }

  /** Reports an error, unless it is that of the read before. */
  #report(error: Error): void {
    const isNew = this.error?.message !== error.message
    this.error = error
    if (!isNew) return
    this.errors++
    if (this.#options.onError) this.#options.onError(error)
    else warnProcess('POLICIES_REFUSED', `a policy file is not in force: ${error.message}`)
  }
}

const MOST_BYTES = 2 ** 20

/** The text of a source. @throws {Error} of the file system or of the function; PolicyError for a file beyond 1 MB. */
async function textOf(source: WatchedSource): Promise<string> {
  if (typeof source === 'function') {
    const given = await source()
    return bounded(Buffer.from(typeof given === 'string' ? given : JSON.stringify(given)))
  }
  const file = await open(source)
  try {
    // One byte beyond the bound, so that a file that grows without end is not read to its end.
    const bytes = Buffer.alloc(MOST_BYTES + 1)
    let length = 0
    for (let isMore = true; isMore;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length)
      length += bytesRead
      isMore = bytesRead > 0 && length < bytes.length
    }
    return bounded(bytes.subarray(0, length))
  } finally {
    await file.close()
  }
}

function bounded(bytes: Uint8Array): string {
  if (bytes.length > MOST_BYTES)
    throw new PolicyError('INVALID_OPTION', 'the policy file is larger than 1 MB')
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
}
