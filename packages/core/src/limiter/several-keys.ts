import type { MaybePromise } from '../stores/store.js'
import { MOST_PARTS } from '../stores/together.js'
import { checkContract, OPEN_PART } from '../values/contract.js'
import { expectedButGot, InputError } from '../values/errors.js'
import { checkNames, type DeclarationOf, unchecked } from '../values/options.js'
import { decideTogether, openPart, type PartOptions, TogetherCall } from './decide-together.js'
import type { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import type { LimiterPart } from './limiter-part.js'
import { isPermitPart, type PermitPart, permitsFirst } from './permits-first.js'
import { WholeDecision } from './whole-decision.js'

/**
 * Charges several keys in one decision: all of them admit the call, or none is charged. The parts may be of one or several
 * limiters and stores. The same limiter, key and list of policies twice is one part of the summed cost.
 *
 * No other call is decided in between if all keys are in the memory of this process, or in one store that decides them in one
 * step, such as a machine store, a Postgres store, or a Redis store on one server, there in one round trip. Otherwise, as in a
 * Cluster or in several stores, all keys are tried in one round trip, and charged in a second one if all admit the call. If
 * another call was faster in between, the charges are undone before the result is known. Two things can stay charged then: what a
 * store that fails cannot undo; and, under gcra, a token bucket or a leaky bucket, as many units as have drained meanwhile.
 *
 * A part may also be a permit, `{ semaphore, key }`: permits are taken first, without waiting, and released where a key denies
 * the call. `whole.release()` ends those of an allowed call.
 * @throws {InputError} INVALID_OPTION, INVALID_KEY, INVALID_COST. {StoreError} under `onStoreError: 'throw'` of a part, and
 * where the store of a semaphore fails.
 * @example
 * import { consumeAll, createLimiter, slidingLog } from '@sluice/core'
 * const perTenant = createLimiter({ policies: [slidingLog({ limit: 100, window: '1h' })] })
 * const perUser = createLimiter({ policies: [slidingLog({ limit: 10, window: '1h' })] })
 * const whole = await consumeAll([
 *   { limiter: perTenant, key: 'acme' },
 *   { limiter: perUser, key: 'acme:42' },
 * ])
 * if (!whole.allowed) console.log(`${whole.denied?.key}, retry in ${whole.retryAfterMs} ms`)
 */
export function consumeAll(parts: readonly (PartOptions | PermitPart)[]): Promise<WholeDecision> {
  try {
    return Promise.resolve(decideAll(parts))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** As `consumeAll`, but returns a promise only if a part is a permit, or an answer comes from another process. */
export function decideAll(given: readonly (PartOptions | PermitPart)[]): MaybePromise<WholeDecision> {
  const parts = checked(given)
  for (let i = 0; i < parts.length; i++) if (isPermitPart(parts[i])) return decideWithPermits(parts)
  return decideTogether(parts as Keys, wholeOf, openedSinglePart)
}

/** Decides as `decideAll` a call of which some parts are permits. Both kinds are checked before the first permit is taken. */
function decideWithPermits(parts: readonly (PartOptions | PermitPart)[]): Promise<WholeDecision> {
  const permits = parts.filter(isPermitPart)
  for (const permit of permits) checkPermit(permit)
  const keys = parts.filter((part) => !isPermitPart(part)) as Keys
  for (const key of keys) openedSinglePart(key)
  const decide = () =>
    keys.length === 0 ? [] : decideTogether(keys, (decisions) => decisions, openedSinglePart)
  return permitsFirst(permits, decide, (...whole) => new WholeDecision(...whole))
}

/**
 * The decision that `consumeAll` would make about these keys now. Writes nothing. Each key is asked about by itself, so every
 * store is asked, and the answers may be of slightly different instants.
 */
export async function peekAll(given: readonly PartOptions[]): Promise<WholeDecision> {
  const call = new TogetherCall(checked(given), wholeOf, openedToPeek)
  const unread = call.unread()
  if (unread) return unread.then(() => peekAll(given)) // overrides of the keys are known then
  const peeked = call.parts.map(async ({ keyspace, key, cost }) => keyspace.decide('peek', key, cost, 0))
  const areCharged = false
  return wholeOf(call.placed(call.decisions(await Promise.all(peeked), areCharged)))
}

/** Opens a part without a note that its override has decided a call. */
const openedToPeek = (part: PartOptions): LimiterPart => openedSinglePart(part, false)

const PART = {
  limiter: unchecked(),
  key: unchecked(),
  cost: unchecked(),
  policies: unchecked(),
} satisfies DeclarationOf<PartOptions>
const PERMIT = { semaphore: unchecked(), key: unchecked() } satisfies DeclarationOf<PermitPart>
const ABOUT_PART = { what: 'a part', error: InputError }

const wholeOf = (decisions: readonly Decision[]): WholeDecision => new WholeDecision(decisions)

/**
 * Returns the list of parts that `consumeAll` or `reserveAll` was given, if it is a list of 1 to 16.
 * @throws {InputError} INVALID_OPTION for any other value.
 */
export function checked<Part>(given: readonly Part[]): readonly Part[] {
  if (Array.isArray(given) && given.length > 0 && given.length <= MOST_PARTS) return given
  const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
  throw expectedButGot(InputError, 'INVALID_OPTION', bound, given)
}

type Keys = readonly PartOptions[]

/**
 * Checks a part that is a permit, as far as its semaphore does not check it.
 * @throws {InputError} INVALID_OPTION.
 */
export function checkPermit(part: PermitPart): void {
  checkNames(PERMIT, part, ABOUT_PART)
  if (typeof part.semaphore.acquire === 'function' && typeof part.semaphore.limitOf === 'function') return
  const what = 'semaphore of a part must be made by createSemaphore()'
  throw expectedButGot(InputError, 'INVALID_OPTION', what, part.semaphore)
}

/**
 * Checks the options of one part of a call on several keys (limiter, key, cost, policies), and opens the part: the key with the
 * state in which it is charged.
 * @throws {InputError} INVALID_OPTION; {PolicyError} VERSION_MISMATCH.
 */
function openedSinglePart(options: PartOptions, isNoted = true): LimiterPart {
  if (!hasOnlyNames(options)) checkNames(PART, options, ABOUT_PART)
  checkLimiter(options.limiter)
  return openPart(options, isNoted)
}

/**
 * Checks the limiter of a part.
 * @throws {InputError} INVALID_OPTION; {PolicyError} VERSION_MISMATCH.
 */
export function checkLimiter(limiter: Limiter): void {
  if (typeof limiter?.[OPEN_PART] !== 'function') {
    throw expectedButGot(
      InputError,
      'INVALID_OPTION',
      'limiter of a part must be made by createLimiter()',
      limiter,
    )
  }
  checkContract('a limiter', limiter)
}

/**
 * Whether the options of a part have no other names than the four that exist. Counts all names, and subtracts those of the four
 * that are given, which takes a quarter of the time of `checkNames`. That is called only if this is false, to name the wrong option.
 */
function hasOnlyNames(options: PartOptions): boolean {
  if (!options) return false
  let others = 0
  for (const _name in options) others++
  if (options.limiter !== undefined) others--
  if (options.key !== undefined) others--
  if (options.cost !== undefined) others--
  if (options.policies !== undefined) others--
  return others === 0
}
