import { type Limiter, type Policy, PolicyError } from '@sluice/core'
import { OPEN_PART, prepareTogether } from '@sluice/core/internal'
import { getOrMake } from './get-or-make.js'
import { type AroundSteps, type Guard, RequestGuard } from './guard.js'
import {
  checkPartCount,
  limiterOf,
  partsOf,
  policiesBrought,
  type RequestLimitOptions,
  USAGE,
} from './options.js'
import type { Platform } from './platform.js'
import { refuseSlips } from './slips.js'
import {
  type AskAboutSeveral,
  type LimitsInForce,
  type OneLimit,
  oneLimit,
  SeveralGuard,
} from './several-limits.js'
import { usageAnswer } from './usage.js'

/**
 * Makes the guard of an adapter: the function that the adapter calls on each request. It returns undefined if the request
 * may pass, and otherwise has answered it. It waits only for callbacks and stores that are async. If a callback throws or
 * rejects, so does the guard, and nothing is charged. With the option `limits`, several limits decide together. Options that
 * `usageHandler` has marked make a guard that answers each request with its caller's usage. An adapter that decides some
 * requests by earlier answers, as Nest does for GraphQL, passes functions that are put before the guard's steps (`around`) or
 * before its decision on `limits` (`aroundSeveral`).
 * @throws {PolicyError} for options that cannot work.
 */
export function createGuard<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
  around?: AroundSteps<Req, Res>,
  aroundSeveral?: AskAboutSeveral<Req, Res>,
): Guard<Req, Res> & Pick<CombinableGuard<Req, Res>, 'inForce'> {
  refuseSlips(options, platform.proxySetting)
  const answerUsage = options && USAGE in options ? usageAnswer(options, platform) : undefined
  const together = answerUsage ?? aroundSeveral
  if (typeof options?.limits === 'function') return guardOfLimitsInForce(options, platform, together)
  if (answerUsage || options?.limits !== undefined) return guardOfSeveral(options, platform, together)
  const limiter = limiterOf(options)
  const { check } = new RequestGuard(options, limiter, platform, around)
  return Object.assign(check, { limiter, limiters: [limiter], options })
}

/**
 * Makes the guard of options with `limits`, a list of limits that are decided together: a request is charged under each,
 * or under none. Each limit has a limiter of its own, made with the options beside the list as defaults. Options without the
 * list, of which usage is asked, have one limit. `around` is put before the common decision. The property `limiter` of the guard
 * is the first limit's.
 * @throws {PolicyError} for options that cannot work.
 */
function guardOfSeveral<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
  around?: AskAboutSeveral<Req, Res>,
): Guard<Req, Res> {
  const limits = options.limits
    ? makeLimits(partsOf(options), options, platform, limiterOf)
    : [oneLimit({}, options, limiterOf(options), platform)]
  const guard = new SeveralGuard(limits, platform, around)
  const limiters = limitersOf(limits)
  checkNames(limiters)
  return Object.assign(guard.check.bind(guard), { limiter: limiters[0]!, limiters, options })
}

/**
 * Makes a limit of each of `parts`, the options of limits of one guard; `frame` are the options of that guard. `limiterFor` returns
 * the limiter of a part; a part with a semaphore has none, and its limit gets the first of the others. `optionsFor`
 * returns the options that the limit gets in place of the part.
 * @throws {PolicyError} INVALID_OPTION if all parts have a semaphore, so that none counts.
 */
function makeLimits<Req, Res>(
  parts: ReturnType<typeof partsOf<Req, Res>>,
  frame: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
  limiterFor: (part: RequestLimitOptions<Req, Res>) => Limiter,
  optionsFor = (part: RequestLimitOptions<Req, Res>, _limiter: Limiter): RequestLimitOptions<Req, Res> =>
    part,
): readonly OneLimit<Req, Res>[] {
  const limiters = parts.map((part) => {
    refuseSlips(part, platform.proxySetting)
    return part.semaphore ? undefined : limiterFor(part)
  })
  const first = limiters.find((limiter) => limiter !== undefined)
  if (!first) throw new PolicyError('INVALID_OPTION', 'limits must have one that counts beside a semaphore')
  return parts.map((part, i) => {
    const limiter = limiters[i]
    return oneLimit(limiter ? optionsFor(part, limiter) : part, frame, limiter ?? first, platform)
  })
}

/** The limiters of the limits that count: those without a semaphore. */
function limitersOf<Req, Res>(limits: readonly OneLimit<Req, Res>[]): readonly Limiter[] {
  return limits.filter(({ semaphore }) => !semaphore).map(({ guard }) => guard.limiter)
}

/**
 * Makes the guard of options whose `limits` is a function, which is asked at each request for the list in force. A limit of another
 * list goes on in the limiter of its name, so that what was consumed still counts, under its new policies; a limit of a new name
 * gets a limiter, which `limiters` has from then on. As long as the function returns the same list, its limits are not made anew.
 * `around` is put before the common decision.
 * @throws {PolicyError} for options that cannot work.
 */
function guardOfLimitsInForce<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
  around?: AskAboutSeveral<Req, Res>,
): Guard<Req, Res> & Pick<CombinableGuard<Req, Res>, 'inForce'> {
  const limiters: Limiter[] = []
  const madeByName = new Map<string, Limiter>()
  // A new limiter is kept at once: a list that is refused, as another of its parts is wrong, comes again with the next request.
  const limiterFor = (part: RequestLimitOptions<Req, Res>): Limiter =>
    part.limiter ? limiterOf(part) : getOrMake(madeByName, part.name ?? 'default', () => limiterOf(part))
  const makeLimitsOf = (list: unknown): ReturnType<LimitsInForce<Req, Res>> => {
    const parts = partsOf({ ...options, limits: () => list as never })
    const counting = parts.filter(({ semaphore }) => !semaphore)
    checkNames(counting.map(({ limiter, name = 'default' }) => limiter ?? { name }))
    const isFirstList = limiters.length === 0
    // A limiter that was made for an earlier list keeps its policies, so each call brings those of this list.
    const optionsFor = (part: RequestLimitOptions<Req, Res>, limiter: Limiter) => {
      if (part.limiter || isFirstList) return part
      for (const tier of part.tiers ?? []) makeKnown(limiter, tier)
      return { ...part, limiter, policies: policiesBrought(part) }
    }
    const newLimits = makeLimits(parts, options, platform, limiterFor, optionsFor)
    const ofLimits = limitersOf(newLimits)
    if (!isFirstList) prepareTogether(ofLimits)
    limiters.push(...new Set(ofLimits.filter((limiter) => !limiters.includes(limiter))))
    return newLimits
  }
  const askForList = options.limits as () => unknown
  let lastList: unknown
  let lastLimits: ReturnType<LimitsInForce<Req, Res>> = []
  const inForce: LimitsInForce<Req, Res> = () => {
    const list = askForList()
    if (list === lastList && lastLimits.length > 0) return lastLimits
    lastLimits = makeLimitsOf(list)
    lastList = list
    return lastLimits
  }
  const guard = new SeveralGuard([], platform, around, [inForce])
  return Object.assign(guard.check.bind(guard), { limiter: limiters[0]!, limiters, options, inForce })
}

/**
 * Makes a limiter know the policies `tier`, under which it then writes the blocks and resets of keys too. It learns them when
 * it opens a part of a call with them; of this part no call is made.
 */
function makeKnown(limiter: Limiter, tier: readonly Policy[]): void {
  const [key, cost, isNoted] = ['', 0, false] as const
  limiter[OPEN_PART](key, cost, tier, isNoted)
}

/**
 * Makes one guard of several, so that a request is charged under the limits of all or under none. Each limit keeps its
 * own callbacks, headers and answer. An entry of `guards` is a guard of one limit, a single limit of a guard that has the list
 * `limits` (then `place` is its index there), or a guard whose `limits` is a function (then it brings those `inForce`).
 * `around` is put before the common decision.
 * @throws {PolicyError} INVALID_OPTION if they have more than 16 limits.
 */
export function combineGuards<Req, Res>(
  guards: readonly CombinableGuard<Req, Res>[],
  platform: Platform<Req, Res>,
  around?: AskAboutSeveral<Req, Res>,
): CombinedGuard<Req, Res> {
  const inForce = guards.flatMap((guard) => guard.inForce ?? [])
  const fixed = guards
    .filter((guard) => !guard.inForce)
    .map(({ options, limiter, place }) =>
      oneLimit(place === undefined ? {} : partsOf(options)[place]!, options, limiter, platform),
    )
  const all = [...fixed, ...inForce.flatMap((limits) => limits())]
  checkPartCount(all)
  const guard = new SeveralGuard(fixed, platform, around, inForce)
  const limiters = limitersOf(all)
  return Object.assign(guard.check.bind(guard), { limiters })
}

/** A guard of one limit, or one of the limits of a guard, as far as another is made of it. */
export interface CombinableGuard<Req, Res> {
  readonly limiter: Limiter
  readonly options: RequestLimitOptions<Req, Res>
  /** Of one of `options.limits`. */
  readonly place?: number
  /** The limits themselves, where `options.limits` is a function. */
  readonly inForce?: LimitsInForce<Req, Res> | undefined
}

/** A guard that was made of several. */
type CombinedGuard<Req, Res> = RequestGuard<Req, Res>['check'] & Pick<Guard<Req, Res>, 'limiters'>

/**
 * Refuses two different limiters of one name for the same request, because headers list limits by name and `decisionOf`
 * finds a decision by it. The same limiter may stand in the list twice.
 * @throws {PolicyError} INVALID_OPTION.
 */
function checkNames(limiters: readonly Pick<Limiter, 'name'>[]): void {
  const twice = limiters.find((one, i) =>
    limiters.slice(i).some((other) => other !== one && other.name === one.name),
  )
  if (!twice) return
  throw new PolicyError('INVALID_OPTION', `two limits are named '${twice.name}': give each a name of its own`)
}
