import {
  createLimiter,
  type Decision,
  type Duration,
  InputError,
  type Limiter,
  type LimiterOptions,
  type Policy,
  PolicyError,
  type Semaphore,
  slidingLog,
} from '@sluice/core'
import {
  checkContract,
  custom,
  type DeclarationOf,
  expectedButGot,
  flag,
  func,
  LIMITER,
  type LimiterSettings,
  type Option,
  readOptions,
  REFUSED,
  unchecked,
  MOST_PARTS,
} from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type HeaderOptions, HEADERS } from './headers.js'
import type { KeyFunction, KeySource } from './caller.js'
import { chain } from './platform.js'
import { addName } from './setup-warnings.js'
import { WAITING, type RequestWaitOptions } from './waiting.js'

/** Addresses and CIDR blocks: '192.0.2.1', '10.0.0.0/8', '2001:db8::/32'. */
export type AddressList = readonly string[]

/** Returns the policies for a request; undefined for the limiter's own. */
export type ChoosePolicies<Req> = (req: Req) => MaybePromise<readonly Policy[] | undefined>

/** The options of every adapter: a limiter or the options to make one, and how requests are counted and answered. */
export interface RequestLimitOptions<Req, Res>
  extends Partial<Omit<LimiterOptions, 'policies'>>, HeaderOptions, RequestWaitOptions {
  /** A limiter to share, instead of the options that make one. */
  readonly limiter?: Limiter
  /** With `window`, short for `policies: [slidingLog({ limit, window })]`. */
  readonly limit?: number
  /** A text such as '250ms', '10s', '1m', '1h' or '1d', or a number of milliseconds. */
  readonly window?: Duration
  /**
   * All policies must admit a request. A function chooses them for each request, for example by the caller's tier, from
   * lists that are made once; if it returns undefined, the limiter's own policies apply.
   */
  readonly policies?: readonly Policy[] | ChoosePolicies<Req>
  /**
   * The key that a request is counted under.
   * @default byIp()
   */
  readonly key?: KeyFunction<Req>
  /**
   * Units that a request takes.
   * @default () => 1
   */
  readonly cost?: (req: Req) => MaybePromise<number>
  /**
   * Whether a request passes uncounted and without headers. `source` reads it in the same way in every framework.
   * @default () => false
   */
  readonly skip?: (req: Req, source: KeySource<Req>) => MaybePromise<boolean>
  /**
   * Callers that pass uncounted and without headers, after `deny`: addresses and CIDR blocks such as '10.0.0.0/8', or a
   * function of the request.
   * @default none
   */
  readonly allow?: AddressList | ((req: Req) => MaybePromise<boolean>)
  /**
   * Callers that are answered 403 and not counted: addresses and CIDR blocks, or a function of the request. What is in
   * both lists is denied.
   * @default none
   */
  readonly deny?: AddressList | ((req: Req) => MaybePromise<boolean>)
  /**
   * Called when the response has been sent: false gives back what the request was charged on entry. Not called if the
   * caller hung up before, so that hanging up is never free.
   * @default () => true
   */
  readonly shouldCharge?: (req: Req, res: Res) => MaybePromise<boolean>
  /**
   * Whether the answer to a key that is blocked, by `block` or a penalty, reads like one to a key over its limit.
   * @default false
   */
  readonly hideBlocks?: boolean
  /**
   * Answers a denial in place of the problem details, by the response or by what it returns. Status and headers are set by
   * then.
   */
  readonly onDenied?: (req: Req, res: Res, decision: Decision) => unknown
  /**
   * Returns the id of a denial, such as `keep` of `keepDenials` in @sluice/metrics: `instance` of the problem details, by which an
   * operator finds the caller.
   * @default none
   */
  readonly denialId?: (decision: Decision) => string
  /**
   * Called once each time a key goes over its limit: with its first denial, and again with a denial that comes after
   * `resetAfterMs` of the one before. Before the answer, which does not wait for it. 10,000 keys are remembered per limiter.
   */
  readonly onExceeded?: (req: Req, res: Res, decision: Decision) => unknown
  /**
   * 1 to 16 limits in place of one, in one decision: a request is charged under all of them, or under none. One with a
   * `semaphore` takes a permit, without waiting, until the response has ended; at least one other has to count. The options
   * of limiters beside it, `key`, `cost` and `shouldCharge` are the defaults of each; all others are of the whole request.
   * A function is asked at each request for the list in force: where it returns another list, each limit goes on in the
   * limiter of its name ('default' without one), under its new `limit`, `window` or `policies`; what else the limiter was made with stays.
   */
  readonly limits?: PartsOf<Req, Res> | (() => PartsOf<Req, Res>)
  /**
   * The name of the caller's plan, which `usageHandler` answers with.
   * @default () => undefined: none
   */
  readonly plan?: (req: Req) => MaybePromise<string | undefined>
}

/** Marks the options of a limit whose requests are answered with their usage. */
export const USAGE: unique symbol = Symbol.for('sluice.usage') as never

type PartsOf<Req, Res> = readonly PartLimitOptions<Req, Res>[]

/** One limit of several that are decided together. Each needs a name of its own. */
export interface PartLimitOptions<Req, Res> extends Partial<
  Pick<
    RequestLimitOptions<Req, Res>,
    keyof LimiterOptions | LimitOption | 'key' | 'cost' | 'skip' | 'shouldCharge'
  >
> {
  /** A semaphore in place of a limiter, of whose permits under `key` a request takes one. Beside it are `key` and `skip` alone. */
  readonly semaphore?: Semaphore
}

type LimitOption = 'limiter' | 'limit' | 'window'

/**
 * Checks the options of an adapter, and returns the limiter that counts its requests: the one in the option `limiter`, or
 * a new one made from the other options. It also notes the limiter's name for warnings that concern all limiters of the
 * process.
 * @throws {PolicyError} INVALID_OPTION for options that are unknown, missing, of a wrong type or in conflict.
 */
export function limiterOf<Req, Res>(options: RequestLimitOptions<Req, Res>): Limiter {
  readOptions(REQUEST_LIMIT, options, { what: 'rateLimit' })
  const limiter = options.limiter
    ? checkShared(options, options.limiter)
    : createLimiter(limiterOptionsOf(options))
  addName(limiter)
  return limiter
}

/**
 * The function that chooses the policies of each request, if the option `policies` is one; undefined if the limiter's own
 * policies apply to all requests. If that function returns undefined for a request, the limiter's own policies apply;
 * where the options give none (neither `limit` nor `limiter`), it throws {InputError} INVALID_POLICIES instead.
 */
export function policyChooser<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
): ChoosePolicies<Req> | undefined {
  const { limiter, limit, policies } = options
  if (typeof policies !== 'function') return undefined
  return limiter || limit !== undefined ? policies : (req) => chain(policies(req), requirePolicies)
}

/**
 * The function that brings the policies of `options` to each request, for a limiter that was made with others. Where the
 * user's function chooses none, it brings the list of `limit` and `window`.
 * @throws {PolicyError} INVALID_OPTION for options that are missing or in conflict.
 */
export function policiesBrought<Req, Res>(options: RequestLimitOptions<Req, Res>): ChoosePolicies<Req> {
  const own = ownPolicies(options)
  const choose = policyChooser(options)
  return choose ? (req) => chain(choose(req), (chosen) => chosen ?? own) : () => own
}

/** Returns a new object with those of the `options` that are named and given, which means that they are not undefined. */
export function pick<O extends object, Name extends keyof O>(
  options: O,
  names: readonly Name[],
): Pick<O, Name> {
  const given = names.filter((name) => options[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, options[name]])) as Pick<O, Name>
}

const { name: _n, policies: _p, tiers: _t, penalty: _s, reservations: _r, nearing: _c, ...settings } = LIMITER

const BY_LIMITERS = Object.keys(settings) as (keyof LimiterSettings)[]

/** The options that limits inherit from a plugin or a module around them, for their limiters and for their requests. */
export const INHERITED = {
  byLimiters: BY_LIMITERS,
  byRequests: [
    'key',
    'skip',
    'allow',
    'deny',
    'headers',
    'headerNames',
    'resetAs',
    'hideBlocks',
    'onDenied',
    'denialId',
    'onExceeded',
  ],
} as const

/** The options that describe a limit, and exclude `limiter`. */
const LIMIT = { limit: unchecked(), window: unchecked(), policies: unchecked() }

/** The options of limiters, which `createLimiter` checks. */
const OF_LIMITERS = Object.fromEntries(Object.keys(LIMITER).map((name) => [name, unchecked()])) as {
  readonly [Name in keyof typeof LIMITER]: Option<unknown>
}

const PART = {
  ...OF_LIMITERS,
  ...LIMIT,
  limiter: unchecked(),
  key: func('such as byIp()'),
  cost: func(),
  skip: func("such as (req) => req.url === '/health'"),
  shouldCharge: func(),
} satisfies DeclarationOf<Omit<PartLimitOptions<unknown, unknown>, 'semaphore'>>

/** The options of a limit that takes a permit. */
const PERMIT = {
  semaphore: custom('made by createSemaphore()', (value) => (isSemaphore(value) ? value : REFUSED)),
  key: PART.key,
  skip: PART.skip,
}

/** By what it has and not by its class, as several copies of core may meet in one process. */
function isSemaphore(value: unknown): value is Semaphore {
  return typeof (value as Partial<Semaphore>).limitOf === 'function'
}

/** The options of every adapter. `createLimiter` checks those of limiters. */
export const REQUEST_LIMIT = {
  ...PART,
  ...HEADERS,
  ...WAITING,
  hideBlocks: flag(false),
  onDenied: func(),
  onExceeded: func(),
  denialId: func(),
  allow: unchecked(),
  deny: unchecked(),
  limits: unchecked(),
  plan: func(),
} satisfies DeclarationOf<RequestLimitOptions<unknown, unknown>>

/**
 * The options of each limit in the option `limits`, with those that its limiter inherits from beside the list, such as
 * the store; a limit that brings a limiter inherits none. Options that describe one limit, such as `limit` and `name`,
 * exclude `limits`, and so do those of requests that wait.
 * @throws {PolicyError} INVALID_OPTION for options that are unknown or in conflict.
 */
export function partsOf<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
): readonly (RequestLimitOptions<Req, Res> & Pick<PartLimitOptions<Req, Res>, 'semaphore'>)[] {
  readOptions(REQUEST_LIMIT, options, { what: 'rateLimit' })
  const limits = typeof options.limits === 'function' ? options.limits() : options.limits
  checkPartCount(limits)
  for (const name of OF_ONE) {
    if (options[name as keyof typeof options] !== undefined) throw conflictingOptions(name, 'limits')
  }
  return limits.map((part: PartLimitOptions<Req, Res>) => {
    readOptions(part?.semaphore ? PERMIT : PART, part, { what: 'a limit of rateLimit' })
    const ofLimiter = part.limiter || part.semaphore ? undefined : pick(options, BY_LIMITERS)
    return { ...ofLimiter, ...part }
  })
}

/** The options that describe one limit, or how its requests wait. */
const OWN = ['limiter', 'name', 'tiers', 'penalty', 'reservations', 'nearing']
const OF_ONE = [...OWN, ...Object.keys({ ...LIMIT, ...WAITING })]

/** Checks that `parts`, the option `limits`, is a list of 1 to 16. @throws {PolicyError} INVALID_OPTION. */
export function checkPartCount<Part>(parts: readonly Part[] | undefined): asserts parts is readonly Part[] {
  if (Array.isArray(parts) && parts.length > 0 && parts.length <= MOST_PARTS) return
  throw expectedButGot(PolicyError, 'INVALID_OPTION', `limits must be a list of 1 to ${MOST_PARTS}`, parts)
}

/**
 * Checks the limiter that was given as the option `limiter`, and returns it. No other option may describe a limiter beside it,
 * except `policies` as a function, which chooses the policies of each request.
 * @throws {PolicyError} INVALID_OPTION.
 */
function checkShared<Req, Res>(options: RequestLimitOptions<Req, Res>, limiter: Limiter): Limiter {
  if (typeof limiter.decide !== 'function') {
    throw expectedButGot(PolicyError, 'INVALID_OPTION', 'limiter must be made by createLimiter()', limiter)
  }
  checkContract('limiter', limiter)
  for (const [name, value] of Object.entries(options)) {
    const describes = name in LIMIT ? typeof value !== 'function' : name in LIMITER
    if (describes && value !== undefined) throw conflictingOptions(name, 'limiter')
  }
  return limiter
}

/**
 * The options of `createLimiter` among the options of an adapter, with `policies` made of `limit` and `window` where
 * these are given.
 */
function limiterOptionsOf<Req, Res>(options: RequestLimitOptions<Req, Res>): LimiterOptions {
  return { ...pick(options, OF_LIMITER), policies: ownPolicies(options) }
}

const OF_LIMITER = Object.keys(LIMITER) as (keyof LimiterOptions)[]

/**
 * The policies that a limiter is made with: `policies` if it is a list, else a sliding log of `limit` and `window`. If
 * `policies` is a function, which chooses for each request, and there is no limit, the limiter still needs a list to be
 * made with. That is the first of `tiers` (the lists that the function may choose, named in advance), or without tiers a
 * stand-in. The function must then choose for every request, so none falls back on that list.
 * @throws {PolicyError} INVALID_OPTION for options that are missing or in conflict.
 */
function ownPolicies<Req, Res>({
  limit,
  window,
  policies,
  tiers,
}: RequestLimitOptions<Req, Res>): readonly Policy[] {
  const list = typeof policies === 'function' ? undefined : policies
  if (list !== undefined && !Array.isArray(list)) {
    const what =
      "policies must be a list, such as [gcra({ limit: 10, window: '1s' })], or a function that gives one"
    throw expectedButGot(PolicyError, 'INVALID_OPTION', what, list)
  }
  if (list && limit !== undefined) throw conflictingOptions('limit', 'policies')
  if (list && window !== undefined) throw conflictingOptions('window', 'policies')
  if (limit !== undefined && window !== undefined) return [slidingLog({ limit, window })]
  if (limit !== undefined || window !== undefined || !policies) {
    throw new PolicyError('INVALID_OPTION', 'limit and window are needed, both, or policies, or a limiter')
  }
  return list ?? tiers?.[0] ?? PLACEHOLDER
}

/** A limiter cannot be made without policies. `requirePolicies` makes sure that no request is counted under these. */
const PLACEHOLDER: readonly Policy[] = [slidingLog({ limit: 1, window: '1s' })]

/**
 * Returns the policies that the user's function chose for a request. They must be given, because the limiter has none of
 * its own.
 * @throws {InputError} INVALID_POLICIES.
 */
function requirePolicies(list: readonly Policy[] | undefined): readonly Policy[] {
  if (list) return list
  throw expectedButGot(
    InputError,
    'INVALID_POLICIES',
    'policies must give a list where there is no limit',
    list,
  )
}

/** The error for two options that cannot both be given. */
function conflictingOptions(name: string, other: string): PolicyError {
  return new PolicyError('INVALID_OPTION', `${name} and ${other} exclude each other: leave one of them out`)
}
