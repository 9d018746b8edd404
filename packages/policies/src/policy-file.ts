import { createLimiter, type Policy, slidingLog, SluiceError } from '@sluice/core'
import {
  checkNames,
  type Declaration,
  nearestTo,
  oneOf,
  type Option,
  printableName,
  readOption,
  required,
  text,
  unchecked,
} from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'
import { addressMatcher } from '@sluice/http'
import { JsonError, type Located, parseLocated, type PolicyPath, shownPath } from './json.js'
import { makePolicy, type PolicyEntry, type Registry } from './registry.js'
import { parseBy, parseWhere, type Where } from './selection.js'

/** Limits as data: limiters by name, as a JSON file has them. */
export interface PolicyFile {
  readonly $schema?: string
  readonly limiters: Readonly<Record<string, LimiterEntry>>
  /**
   * The limiters whose callers may begin anew when this file replaces another while a service runs: a change of their shapes or
   * of `by` is refused otherwise.
   * @default []
   */
  readonly reset?: readonly string[]
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
  /**
   * Policies in place of `policies` for the calls of a plan, by the plan's name. A call of a plan that is not here counts
   * under `policies`.
   * @default {}
   */
  readonly plans?: Readonly<Record<string, readonly PolicyEntry[]>>
  /** Callers that this limiter does not count. */
  readonly exempt?: ExemptEntry
}

/** Callers that a limiter of a policy file does not count. */
export interface ExemptEntry {
  /** Addresses and CIDR blocks, such as '10.0.0.0/8'. */
  readonly addresses?: readonly string[]
  /** Keys as decisions report them, such as 'ip:203.0.113.7'. They are those that `by` makes, so it has to be there. */
  readonly keys?: readonly string[]
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
  /** The policies of each plan. */
  readonly plans?: ReadonlyMap<string, readonly Policy[]>
  readonly exempt?: Exempt | undefined
}

/** The callers that a limiter does not count. */
export interface Exempt {
  /** Whether an address, in the canonical form of `clientAddress(text, 128)`, is exempt. */
  hasAddress(address: string): boolean
  /** Keys as decisions report them. */
  readonly keys: ReadonlySet<string>
}

/** A policy file that was read. A limiter with an error is not among the limiters. */
export interface ReadPolicies {
  readonly limiters: readonly ReadLimiter[]
  readonly errors: readonly PolicyProblem[]
  /** The limiters that may lose their state when this file replaces another. */
  readonly reset: readonly string[]
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
    return { ...reader.file(), errors: reader.errors, lineOf: located.lineOf }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, message } = error
    const errors: PolicyProblem[] = [{ severity: 'error', code: 'INVALID_JSON', path: '', line, message }]
    return { limiters: [], reset: [], errors, lineOf: () => line }
  }
}

const FILE = { $schema: unchecked(), limiters: unchecked(), reset: unchecked() }
const LIMITER = {
  policies: unchecked(),
  by: unchecked(),
  where: unchecked(),
  plans: unchecked(),
  exempt: unchecked(),
}
const EXEMPT = { addresses: unchecked(), keys: unchecked() }
/** A call without a plan is one of the plan ''. */
const PLAN = text('a text that is not empty', /[^]/, undefined, 'INVALID_NAME')

type Json = Readonly<Record<string, unknown>>

class PolicyReader {
  readonly errors: PolicyProblem[] = []
  readonly #algorithm: Option<string>

  /**
   * Makes the reader of one policy file: `located` is its JSON with the line of each value, `registry` the algorithms that it
   * may name.
   */
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
  file(): Pick<ReadPolicies, 'limiters' | 'reset'> {
    const { value, repeated } = this.located
    for (const path of repeated) this.#report(path, 'REPEATED_NAME', 'the name occurs twice in one object')
    const file = this.#readObject([], value, FILE)
    const limiters = file && this.#readObject(['limiters'], file['limiters'])
    const known = Object.keys(limiters ?? {})
    const reset = this.#texts(['reset'], file?.['reset'])
    for (const [i, name] of reset.entries()) {
      if (!known.includes(name)) this.#report(['reset', i], 'INVALID_OPTION', `there is no limiter '${name}'`)
    }
    const read = Object.entries(limiters ?? {}).flatMap(
      ([name, entry]) => this.#readLimiter(name, entry) ?? [],
    )
    return { limiters: read, reset }
  }

  /**
   * Reads one limiter of the file: its name, its policies and those of its plans, whose calls are counted together (`by`), which
   * calls are counted (`where`), and which callers are not (`exempt`). All errors in it are reported; undefined if there are any.
   */
  #readLimiter(name: string, value: unknown): ReadLimiter | undefined {
    const path = ['limiters', name]
    const errorsBefore = this.errors.length
    this.#reportErrorsOf(path, () => readOption(printableName, name, 'name', { what: 'a limiter' }))
    const entry = this.#readObject(path, value, LIMITER)
    if (!entry) return undefined
    const { policies: list, by, where, plans = {}, exempt } = entry
    const policies = this.#readPolicies([...path, 'policies'], list, path)
    const ofPlans = Object.entries(this.#readObject([...path, 'plans'], plans) ?? {}).map(
      ([plan, ofPlan]) => {
        const planPath = [...path, 'plans', plan]
        this.#reportErrorsOf(planPath, () => readOption(PLAN, plan, 'name', { what: 'a plan' }))
        return [plan, this.#readPolicies(planPath, ofPlan)] as const
      },
    )
    const limiter: ReadLimiter = {
      name,
      policies,
      by: by === undefined ? undefined : this.#reportErrorsOf([...path, 'by'], () => parseBy(by)),
      where:
        where === undefined ? undefined : this.#reportErrorsOf([...path, 'where'], () => parseWhere(where)),
      plans: new Map(ofPlans),
      exempt:
        exempt === undefined ? undefined : this.#readExempt([...path, 'exempt'], exempt, by !== undefined),
    }
    return this.errors.length === errorsBefore ? limiter : undefined
  }

  /**
   * Reads the list of policies at a path. A limiter is made of them only to check how many there are and whether their names differ;
   * an error of that is reported at `errorPath`. A policy with an error, which is reported too, is replaced by another for that check.
   */
  #readPolicies(path: PolicyPath, list: unknown, errorPath = path): readonly Policy[] {
    const entries: readonly unknown[] = Array.isArray(list) ? list : []
    const read = entries.map((entry, i) => this.#readPolicy([...path, i], entry))
    const policies = read.map(
      (policy, i) => policy ?? slidingLog({ limit: 1, window: '1s', name: `policies[${i}]` }),
    )
    // It has a listener, so that it warns of nothing: it decides no call.
    this.#reportErrorsOf(errorPath, () => createLimiter({ policies }).on('warning', () => {}))
    return policies
  }

  /**
   * Reads the callers whom a limiter does not count, their addresses and their keys. Keys are an error unless the limiter has `by`
   * (`hasBy`), which makes the keys that they are compared with.
   */
  #readExempt(path: PolicyPath, value: unknown, hasBy: boolean): Exempt | undefined {
    const entry = this.#readObject(path, value, EXEMPT)
    const addresses = this.#texts([...path, 'addresses'], entry?.['addresses'])
    const keys = this.#texts([...path, 'keys'], entry?.['keys'])
    if (keys.length > 0 && !hasBy)
      this.#report([...path, 'keys'], 'INVALID_OPTION', "keys are those of 'by': write it beside exempt")
    const hasAddress = this.#reportErrorsOf([...path, 'addresses'], () =>
      addressMatcher(addresses, 'addresses'),
    )
    return hasAddress && { hasAddress, keys: new Set(keys) }
  }

  /** Returns `value` if it is a list of texts, and an empty list if it is left out; for any other it reports an error. */
  #texts(path: PolicyPath, value: unknown = []): readonly string[] {
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
    this.#report(path, 'INVALID_OPTION', `expected a list of texts, got ${JSON.stringify(value)}`)
    return []
  }

  /**
   * Reads one policy of a limiter, by the factory that `algorithm` names and its options. All errors in it are reported at their
   * paths; undefined if a value has one. If there is no such algorithm, the options are checked as those of the algorithm with the
   * nearest name.
   */
  #readPolicy(path: PolicyPath, value: unknown): Policy | undefined {
    const entry = this.#readObject(path, value)
    if (!entry) return undefined
    const { algorithm: given, ...options } = entry
    const checkAlgorithm = () => readOption(this.#algorithm, given, 'algorithm', { what: shownPath(path) })
    const algorithm = typeof given === 'string' ? nearestTo(given, Object.keys(this.registry)) : undefined
    const advice = algorithm === undefined ? '' : `; did you mean '${algorithm}'?`
    this.#reportErrorsOf([...path, 'algorithm'], checkAlgorithm, advice)
    if (algorithm === undefined) return undefined
    const declaration = this.registry[algorithm]!.options
    this.#readObject(path, options, declaration, algorithm)
    const errorsBefore = this.errors.length
    // Each option by itself, because a factory stops at the first fault.
    for (const [name, option] of Object.entries(declaration))
      this.#reportErrorsOf([...path, name], () =>
        readOption(option, options[name], name, { what: algorithm }),
      )
    if (this.errors.length > errorsBefore) return undefined
    const declared = Object.fromEntries(Object.keys(declaration).map((name) => [name, options[name]]))
    return this.#reportErrorsOf(path, () => makePolicy({ algorithm, ...declared }, this.registry))
  }

  /**
   * Returns the value at a path of the file if it is an object; for any other value it reports an error and returns undefined. If a
   * `declaration` is given, of the names that the object may have, each other name is reported too. `what` names the object in
   * messages.
   */
  #readObject(
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
      this.#reportErrorsOf([...path, name], () =>
        checkNames(declaration!, { [name]: inner as unknown }, about),
      )
    return value as Json
  }

  /**
   * Returns the result of `make`. If that throws an error of Sluice, the error is reported at the path and the result is
   * undefined, so that one reading finds all errors of the file. `advice` stands behind the message.
   */
  #reportErrorsOf<T>(path: PolicyPath, make: () => T, advice = ''): T | undefined {
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
