import { createLimiter, type Policy, slidingLog, SluiceError } from '@sluice/core'
import {
  checkNames,
  type Declaration,
  nearestTo,
  oneOf,
  type Option,
  printableName,
  readOne,
  required,
  unchecked,
} from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'
import { JsonError, type Located, parseLocated, type PolicyPath, shownPath } from './json.js'
import { makePolicy, type PolicyEntry, type Registry } from './registry.js'
import { parseBy, parseWhere, type Where } from './selection.js'

/** Limits as data: limiters by name, as a JSON file has them. */
export interface PolicyFile {
  readonly $schema?: string
  readonly limiters: Readonly<Record<string, LimiterEntry>>
}

/** One limiter of a policy file. */
export interface LimiterEntry {
  /** 1 to 10 policies; a call must pass all of them. */
  readonly policies: readonly PolicyEntry[]
  /**
   * Whose calls are counted together: 'ip', 'header:NAME' or 'field:PATH'.
   * @default 'ip'
   */
  readonly by?: string
  /**
   * Which calls are counted: conditions such as 'path=/login,method=POST'.
   * @default all calls
   */
  readonly where?: string
}

/** A fault of a policy file, or what smells in it. */
export interface PolicyProblem {
  readonly severity: 'error' | 'smell'
  /** Stable; docs/cli.md and docs/errors.md have a section for each. */
  readonly code: string
  /** The place in the file, to be shown: `limiters.api.policies[0].limit`; '' for the file as a whole. */
  readonly path: string
  readonly line: number
  readonly message: string
}

/** A limiter of a file that was read, with what makes it. */
export interface ReadLimiter {
  readonly name: string
  readonly policies: readonly Policy[]
  /** The name of the part of a call that names the caller. */
  readonly by: string | undefined
  readonly where: Where | undefined
}

/** A policy file that was read. A limiter with an error is not among the limiters. */
export interface ReadPolicies {
  readonly limiters: readonly ReadLimiter[]
  readonly errors: readonly PolicyProblem[]
  /** The line of a path of the file. */
  readonly lineOf: (path: PolicyPath) => number
}

/**
 * Reads the text of a policy file (JSON), and finds all of its errors at once: what is not valid is left out of the
 * limiters and listed in `errors`. A text that is not JSON has one error, and no limiters. Policies name an algorithm of `registry`.
 */
export function readPolicies(text: string, registry: Registry = algorithms): ReadPolicies {
  try {
    const located = parseLocated(text)
    const reader = new PolicyReader(located, registry)
    return { limiters: reader.file(), errors: reader.errors, lineOf: located.lineOf }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, message } = error
    const errors: PolicyProblem[] = [{ severity: 'error', code: 'INVALID_JSON', path: '', line, message }]
    return { limiters: [], errors, lineOf: () => line }
  }
}

const FILE = { $schema: unchecked(), limiters: unchecked() }
const LIMITER = { policies: unchecked(), by: unchecked(), where: unchecked() }

type Json = Readonly<Record<string, unknown>>

class PolicyReader {
  readonly errors: PolicyProblem[] = []
  readonly #algorithm: Option<string>

  constructor(
    readonly located: Located,
    readonly registry: Registry,
  ) {
    this.#algorithm = required(oneOf(Object.keys(registry)))
  }

  /**
   * Reads all limiters of the file. A limiter with an error is left out, and each error goes into `errors`. Names that an
   * object has twice are errors too, as JSON would keep only one.
   */
  file(): readonly ReadLimiter[] {
    const { value, repeated } = this.located
    for (const path of repeated) this.#report(path, 'REPEATED_NAME', 'the name occurs twice in one object')
    const file = this.#object([], value, FILE)
    const limiters = file && this.#object(['limiters'], file['limiters'])
    return Object.entries(limiters ?? {}).flatMap(([name, entry]) => this.#limiter(name, entry) ?? [])
  }

  /**
   * Reads one limiter of the file: its name, its policies, by which part of a call calls are counted (`by`), and which calls
   * are counted (`where`). All errors in it are reported; undefined if there are any.
   */
  #limiter(name: string, value: unknown): ReadLimiter | undefined {
    const path = ['limiters', name]
    const before = this.errors.length
    this.#attempt(path, () => readOne(printableName, name, 'name', { what: 'a limiter' }))
    const entry = this.#object(path, value, LIMITER)
    if (!entry) return undefined
    const { policies: list, by, where } = entry
    const entries: readonly unknown[] = Array.isArray(list) ? list : []
    const read = entries.map((each, i) => this.#policy([...path, 'policies', i], each))
    // The checks that only a limiter makes: how many policies there are, and their names beside each other.
    const policies = read.map(
      (policy, i) => policy ?? slidingLog({ limit: 1, window: '1s', name: `policies[${i}]` }),
    )
    // What is kept by it is nothing, so it warns of nothing that would be lost.
    this.#attempt(path, () => createLimiter({ policies }).on('warning', () => {}))
    const limiter: ReadLimiter = {
      name,
      policies,
      by: by === undefined ? undefined : this.#attempt([...path, 'by'], () => parseBy(by)),
      where: where === undefined ? undefined : this.#attempt([...path, 'where'], () => parseWhere(where)),
    }
    return this.errors.length === before ? limiter : undefined
  }

  /**
   * Reads one policy of a limiter: the factory that `algorithm` names, and its options. All errors in it are reported at
   * their paths; undefined if there is one in its values. The options of an algorithm that does not exist are those of the
   * one with the nearest name.
   */
  #policy(path: PolicyPath, value: unknown): Policy | undefined {
    const entry = this.#object(path, value)
    if (!entry) return undefined
    const { algorithm: given, ...options } = entry
    const choose = () => readOne(this.#algorithm, given, 'algorithm', { what: shownPath(path) })
    const algorithm = typeof given === 'string' ? nearestTo(given, Object.keys(this.registry)) : undefined
    const advice = algorithm === undefined ? '' : `; did you mean '${algorithm}'?`
    this.#attempt([...path, 'algorithm'], choose, advice)
    if (algorithm === undefined) return undefined
    const declaration = this.registry[algorithm]!.options
    this.#object(path, options, declaration, algorithm)
    const before = this.errors.length
    // Each option by itself, because a factory stops at the first fault.
    for (const [name, declared] of Object.entries(declaration))
      this.#attempt([...path, name], () => readOne(declared, options[name], name, { what: algorithm }))
    if (this.errors.length > before) return undefined
    const own = Object.fromEntries(Object.keys(declaration).map((name) => [name, options[name]]))
    return this.#attempt(path, () => makePolicy({ algorithm, ...own }, this.registry))
  }

  /**
   * Returns `value`, which stands at a path of the file, if it is an object; for any other value it reports an error and
   * returns undefined. If a `declaration` of the names that may stand in the object is given, each other name is reported
   * too. `what` names the object in messages.
   */
  #object(
    path: PolicyPath,
    value: unknown,
    declaration?: Declaration,
    what = 'a policy file',
  ): Json | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#report(path, 'INVALID_OPTION', `expected an object, got ${JSON.stringify(value) ?? 'nothing'}`)
      return undefined
    }
    const about = { what }
    for (const [name, inner] of declaration ? Object.entries(value) : [])
      this.#attempt([...path, name], () => checkNames(declaration!, { [name]: inner as unknown }, about))
    return value as Json
  }

  /**
   * Returns the result of `make`. If that throws an error of Sluice, the error is reported at the path and the result is
   * undefined, so that one reading finds all errors of the file. `advice` stands behind the message.
   */
  #attempt<T>(path: PolicyPath, make: () => T, advice = ''): T | undefined {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      this.#report(path, error.code, error.message + advice)
      return undefined
    }
  }

  /** Adds an error, with the line of the value at the path. */
  #report(path: PolicyPath, code: string, message: string): void {
    const line = this.located.lineOf(path)
    this.errors.push({ severity: 'error', code, path: shownPath(path), line, message })
  }
}
