import { createLimiter, type Limiter, type LimiterOptions, type Policy, PolicyError } from '@sluice/core'
import { FOLLOW, MOST_PARTS, OPEN_PART } from '@sluice/core/internal'
import {
  byApiKey,
  byIp,
  byUser,
  callerOf,
  chain,
  clientAddress,
  type KeyFunction,
  type KeySource,
  type PartLimitOptions,
  pathOf,
} from '@sluice/http'
import {
  type PolicyFile,
  type PolicyProblem,
  type ReadLimiter,
  readPolicies,
  type ReadPolicies,
} from './policy-file.js'
import { shownPath } from './json.js'
import type { ReadPart } from './selection.js'

/*
 * A policy file that acts: the limits of adapters, and limiters, as the file has them.
 */

/** A policy file: its text, its value as JSON gives it, or what was read of it. */
export type PolicySource = string | PolicyFile | ReadPolicies

/** A policy file that may be replaced while the service runs, as `watchPolicies` gives it. */
export interface PoliciesInForce {
  /** The file in force: the same object until another is in force. */
  readonly current: ReadPolicies
  /**
   * Keeps files out of force that cannot act in an application which gives the values of these fields.
   * @throws {PolicyError} INVALID_OPTION if that in force cannot.
   */
  require(fields: readonly string[]): void
  /** Has `changed` called, which is held weakly, once another file is in force. Without it the file is looked up at each call. */
  follow?(changed: () => void): void
}

/** How an application fills in what a policy file leaves to it. */
export interface LimitsFromOptions<Req> {
  /**
   * The name of the plan of a request; undefined, or a name that a limiter has no plan of, for its `policies`.
   * @default none
   */
  readonly plan?: (req: Req) => string | undefined | Promise<string | undefined>
  /** The values of `field:PATH` in the file, by their paths. A request without a value is counted by its address. */
  readonly fields?: Readonly<Record<string, (req: Req) => string | number | null | undefined>>
}

/** Limits as the option `limits` of every adapter takes them. */
export type LimitsOfFile<Req> = readonly PartLimitOptions<Req, unknown>[]

/**
 * The option `limits` of every adapter, of a policy file: `where` and `exempt` decide which requests a limit counts, and `by` is
 * their key. Of a file that is watched it is looked up at each request. Options of limiters, such as `store`, stand beside
 * `limits`, and so does the `key` of limits without `by`.
 * @throws {PolicyError} INVALID_OPTION for a file with errors, or whose limits ask what a request does not have.
 * @example
 * app.use(rateLimit({ limits: limitsFrom(file), store }))
 */
export function limitsFrom<Req>(
  file: PoliciesInForce,
  options?: LimitsFromOptions<Req>,
): () => LimitsOfFile<Req>
export function limitsFrom<Req>(file: PolicySource, options?: LimitsFromOptions<Req>): LimitsOfFile<Req>
/* Both forms: the limits of a file, or of a file that is watched a function that returns those of its latest version. */
export function limitsFrom<Req>(
  file: PolicySource | PoliciesInForce,
  options: LimitsFromOptions<Req> = {},
): LimitsOfFile<Req> | (() => LimitsOfFile<Req>) {
  if (!isWatched(file)) return limitsOf(readSource(file), options)
  file.require(Object.keys(options.fields ?? {}))
  let lastVersion: ReadPolicies | undefined
  let limits: LimitsOfFile<Req> = []
  return () => {
    const { current } = file
    if (current !== lastVersion) limits = limitsOf(current, options)
    lastVersion = current
    return limits
  }
}

/**
 * The limiter of this name in a policy file, made with further options of `createLimiter`, such as the store; `tiers` are lists
 * that it knows beside those of the file's plans. Of a file that is watched its policies are looked up at each call; once the file
 * has no such limiter, the last ones stay. `where`, `by` and `exempt` are for requests: this limiter counts each call that it gets,
 * under its key.
 * @throws {PolicyError} INVALID_OPTION for a file with errors, or without this limiter.
 */
export function limiterFrom(
  file: PolicySource | PoliciesInForce,
  name: string,
  options: Omit<LimiterOptions, 'name' | 'policies'> = {},
): Limiter {
  const read = isWatched(file) ? file.current : readSource(file)
  const first = read.limiters.find((limiter) => limiter.name === name)
  if (!first) throw new PolicyError('INVALID_OPTION', `the policy file has no limiter '${name}'`)
  const further = { ...options, tiers: [...first.plans!.values()].concat(options.tiers ?? []), name }
  if (!isWatched(file)) return createLimiter({ ...further, policies: first.policies })
  let known = first
  const policiesInForce = (): readonly Policy[] => {
    const current = file.current.limiters.find((limiter) => limiter.name === name)
    if (current && current !== known) {
      known = current
      // The limiter has to know the lists of other plans too, as it writes blocks and resets of a key under each.
      for (const policies of current.plans!.values()) makeKnown(limiter, policies)
    }
    return known.policies
  }
  const follow = file.follow?.bind(file)
  const policies = follow ? Object.assign(policiesInForce, { [FOLLOW]: follow }) : policiesInForce
  const limiter = createLimiter({ ...further, policies })
  return limiter
}

/** Has a limiter know a list of policies as after a call under it, and takes nothing from a limit. */
function makeKnown(limiter: Limiter, policies: readonly Policy[]): void {
  const [key, cost, isNoted] = ['', 0, false] as const
  limiter[OPEN_PART](key, cost, policies, isNoted)
}

/**
 * The policies of a plan of a limiter, for the option `policies` of a call; those of the limiter where it has no such plan,
 * undefined where the file has no such limiter.
 */
export function policiesOf(
  file: ReadPolicies | PoliciesInForce,
  name: string,
  plan = '',
): readonly Policy[] | undefined {
  const { limiters } = isWatched(file) ? file.current : file
  const found = limiters.find((limiter) => limiter.name === name)
  return found?.plans?.get(plan) ?? found?.policies
}

/**
 * Finds what an application cannot do of a policy file that was read: conditions on the response, which does not exist yet; fields
 * of a log, unless they are among the `fields` that the application gives the values of; and no limiter, or more than decide
 * together.
 */
export function problemsInApp(
  { limiters, lineOf, errors }: ReadPolicies,
  fields: readonly string[] = [],
): readonly PolicyProblem[] {
  const problem = (severity: PolicyProblem['severity'], path: readonly string[], message: string) => {
    return { severity, code: 'NOT_IN_REQUEST', path: shownPath(path), line: lineOf(path), message }
  }
  const problemsOfPart = (path: readonly string[], part: string): readonly PolicyProblem[] => {
    if (part === 'status') {
      const remedy = 'shouldCharge: (req, res) => res.statusCode === 401 beside limits'
      return [problem('error', path, `a request has no 'status' yet: leave it out, and write ${remedy}`)]
    }
    const field = part.startsWith('field:') ? part.slice('field:'.length) : undefined
    if (field === undefined || fields.includes(field)) return []
    const remedy = `limitsFrom(file, { fields: { ${JSON.stringify(field)}: (req) => ... } })`
    return [problem('smell', path, `a request has no '${part}': write ${remedy}`)]
  }
  const found = limiters.flatMap(({ name, by, where }) => [
    ...(where?.parts ?? []).flatMap((part) => problemsOfPart(['limiters', name, 'where'], part)),
    ...(by === undefined ? [] : problemsOfPart(['limiters', name, 'by'], by)),
  ])
  // A limiter with an error is not among the limiters.
  const isNumberRight = errors.length > 0 || (limiters.length > 0 && limiters.length <= MOST_PARTS)
  const message = `an application takes 1 to ${MOST_PARTS} limiters of a file, got ${limiters.length}`
  return isNumberRight ? found : [...found, problem('error', ['limiters'], message)]
}

/** Whether a source of policies is one that is watched. */
const isWatched = (file: PolicySource | PoliciesInForce): file is PoliciesInForce =>
  typeof file === 'object' && 'require' in file

/** Reads a policy file. @throws {PolicyError} INVALID_OPTION with all errors of the file. */
function readSource(file: PolicySource): ReadPolicies {
  const isRead = typeof file === 'object' && 'lineOf' in file
  const read = isRead ? file : readPolicies(typeof file === 'string' ? file : JSON.stringify(file))
  refuse(read.errors)
  return read
}

/**
 * Throws an error with all of these problems of a policy file, unless there are none.
 * @throws {PolicyError} INVALID_OPTION.
 */
export function refuse(problems: readonly PolicyProblem[]): void {
  if (problems.length === 0) return
  const lines = problems.map(({ line, path, message }) => `line ${line}: ${path && `${path}: `}${message}`)
  throw new PolicyError('INVALID_OPTION', `the policy file is not valid: ${lines.join('; ')}`)
}

/** The limits of a file that was read, as adapters take them. @throws {PolicyError} INVALID_OPTION for a file that cannot act. */
function limitsOf<Req>(read: ReadPolicies, options: LimitsFromOptions<Req>): LimitsOfFile<Req> {
  refuse([...read.errors, ...problemsInApp(read, Object.keys(options.fields ?? {}))])
  return read.limiters.map((limiter) => limitOf(limiter, options))
}

/**
 * The limit of an adapter that a limiter of a file describes. It skips the requests that `where` does not match and the callers
 * that are `exempt`, and decides each request under the policies of its plan, if it has one.
 */
function limitOf<Req>(
  { name, policies, plans, by, where, exempt }: ReadLimiter,
  { plan, fields = {} }: LimitsFromOptions<Req>,
): PartLimitOptions<Req, unknown> {
  const key = by === undefined ? undefined : keyOf(by, fields)
  const skip = (req: Req, source: KeySource<Req>) => {
    if (where && !where.matches(partReader(req, source, fields))) return true
    if (!exempt) return false
    const address = callerOf(req, source, wholeAddress)
    if (address !== undefined && exempt.hasAddress(address)) return true
    // A file has exempt keys only beside `by`, so there is a key.
    return exempt.keys.size > 0 && chain(key!(req, source), (caller) => exempt.keys.has(caller))
  }
  const byRequest = { name, ...(key && { key }), ...((where || exempt) && { skip }) }
  if (plan === undefined || plans === undefined || plans.size === 0) return { ...byRequest, policies }
  return {
    ...byRequest,
    policies: (req) => chain(plan(req), (planName) => plans.get(planName ?? '') ?? policies),
    tiers: [policies, ...plans.values()],
  }
}

/** The function that makes the key of a request, by what `by` names. A request without that header or field gets its address. */
function keyOf<Req>(by: string, fields: NonNullable<LimitsFromOptions<Req>['fields']>): KeyFunction<Req> {
  if (by === 'ip') return byIp()
  return by.startsWith('field:')
    ? byUser(fields[by.slice('field:'.length)]!)
    : byApiKey(by.slice('header:'.length))
}

const wholeAddress = (text: string | undefined): string | undefined => clientAddress(text, 128)

/** The function that returns a part of a request by the name that parts of logs have, such as `path` or `header:user-agent`. */
function partReader<Req>(
  req: Req,
  source: KeySource<Req>,
  fields: NonNullable<LimitsFromOptions<Req>['fields']>,
): ReadPart {
  return (name) => {
    if (name === 'ip') return callerOf(req, source, clientAddress)
    if (name === 'method') return source.method(req)
    if (name === 'path') return pathOf(source.url(req) ?? '')
    if (name === 'host')
      return source.header(req, 'host') ?? hostIn(source.url(req)) ?? source.header(req, ':authority')
    if (name.startsWith('field:')) return fields[name.slice('field:'.length)]!(req)?.toString()
    return source.header(req, name.slice('header:'.length))
  }
}

/** The host of an absolute URL, such as that of a Request, whose Headers refuse to be asked for ':authority'. */
const hostIn = (url = ''): string | undefined => /^https?:\/\/([^/?#]+)/i.exec(url)?.[1]
