import { checkContract, SETTINGS } from '../values/contract.js'
import type { Decision } from '../limiter/decision.js'
import { PolicyError } from '../values/errors.js'
import { createLimiter, type Limiter, type LimiterOptions, type LimiterSettings } from '../limiter/limiter.js'
import type { MaybePromise } from '../stores/store.js'
import type { HeaderOptions } from './headers.js'
import { atOdds, invalidOption } from './invalid-option.js'
import type { KeyFunction } from './keys.js'
import { ownPolicies, type PoliciesOptions } from './policies.js'

/** What every adapter takes: a limiter or how to make one, and how requests are counted and answered. */
export interface GuardOptions<Req, Res>
  extends Partial<Omit<LimiterOptions, 'policies'>>, PoliciesOptions<Req>, HeaderOptions {
  /** A limiter to share, instead of the options that make one. */
  readonly limiter?: Limiter
  /** Whom a request is counted for; default `byIp()`. */
  readonly key?: KeyFunction<Req>
  /** Units that a request takes; default 1. */
  readonly cost?: (req: Req) => MaybePromise<number>
  /** Requests that are not counted and get no headers; default none. */
  readonly skip?: (req: Req) => MaybePromise<boolean>
  /**
   * Asked when the response has been sent: false gives back what was charged on entry. Nobody is asked when the
   * caller hung up before, so hanging up is never free.
   */
  readonly shouldCharge?: (req: Req, res: Res) => MaybePromise<boolean>
  /** Answers a denial instead of the problem details; status and headers are set by then. */
  readonly onDenied?: (req: Req, res: Res, decision: Decision) => unknown
}

/**
 * The limiter that `options` hold or describe.
 * @throws {PolicyError} INVALID_OPTION for options that are unknown, missing, of a wrong type or at odds.
 */
export function limiterOf<Req, Res>(options: GuardOptions<Req, Res>): Limiter {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('options must be an object', options)
  for (const [name, value] of Object.entries(options)) checkOption(name, value)
  return options.limiter ? checkShared(options, options.limiter) : createLimiter(described(options))
}

/**
 * Where a limiter counts and what it does in an outage, for limiters that are to do the same under another name. One
 * that was given no store has none to pass on.
 */
export function settingsOf(limiter: Limiter): LimiterSettings {
  return limiter[SETTINGS]
}

/** What each option is for. The type checker sees to it that none is missing. */
const KINDS: Record<keyof GuardOptions<unknown, unknown>, 'limiter' | 'policies' | 'callback' | 'other'> = {
  name: 'limiter',
  store: 'limiter',
  enforce: 'limiter',
  onStoreError: 'limiter',
  deadline: 'limiter',
  leases: 'limiter',
  limit: 'policies',
  window: 'policies',
  policies: 'policies',
  key: 'callback',
  cost: 'callback',
  skip: 'callback',
  shouldCharge: 'callback',
  onDenied: 'callback',
  headers: 'other',
  resetAs: 'other',
  limiter: 'other',
}

/** Names that options had, with those that they have. */
const RENAMED = new Map([
  ['charge', 'shouldCharge'],
  ['reset', 'resetAs'],
])

function checkOption(name: string, value: unknown): void {
  if (!Object.hasOwn(KINDS, name)) {
    const renamed = RENAMED.get(name)
    const hint = renamed ? `: it is called '${renamed}'` : ''
    throw new PolicyError('INVALID_OPTION', `there is no option '${name}'${hint}`)
  }
  const callback = KINDS[name as keyof typeof KINDS] === 'callback'
  if (callback && value !== undefined && typeof value !== 'function') {
    throw invalidOption(`${name} must be a function`, value)
  }
}

/** A function of policies goes with a limiter, as it says nothing about the limiter's own. */
function checkShared<Req, Res>(options: GuardOptions<Req, Res>, limiter: Limiter): Limiter {
  if (typeof limiter.decide !== 'function')
    throw invalidOption('limiter must be made by createLimiter()', limiter)
  checkContract('limiter', limiter)
  for (const [name, value] of Object.entries(options)) {
    const kind = KINDS[name as keyof typeof KINDS]
    const describes = kind === 'limiter' || (kind === 'policies' && typeof value !== 'function')
    if (describes && value !== undefined) throw atOdds(name, 'limiter')
  }
  return limiter
}

function described<Req, Res>(options: GuardOptions<Req, Res>): LimiterOptions {
  const own = Object.entries(options).filter(([name]) => KINDS[name as keyof typeof KINDS] === 'limiter')
  return { ...(Object.fromEntries(own) as Partial<LimiterOptions>), policies: ownPolicies(options) }
}
