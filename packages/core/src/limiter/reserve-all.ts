import type { Answer } from '../stores/store.js'
import { isWholeDenied } from '../stores/together.js'
import { REPORT_PART, RESERVE_PART, UNREAD } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { openPart } from './decide-together.js'
import { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import { isPermitPart, type PermitPart, permitsFirst } from './permits-first.js'
import { requireReserving, RESERVED_PART, reserveOf, type ReserveOptions } from './reserving-options.js'
import { checked, checkLimiter, checkPermit } from './several-keys.js'
import { WholeDecision } from './whole-decision.js'

/** One key of a call that reserves on several, with the options of `reserve`. */
export interface ReservePart extends Omit<ReserveOptions, 'maxWait' | 'signal'> {
  readonly limiter: Limiter
  readonly key: string
}

/**
 * Reserves units of several keys: all of them admit the call, or none is charged. Parts may be permits too, which come first. All
 * keys are tried, one that several parts have for the sum of their costs, then all are reserved; what was reserved of a call that lost a
 * race in between is released, which a gcra, a token bucket or a leaky bucket gives back as far as it has not drained meanwhile. Each
 * decision has its `reservation`, and `settle` of the whole settles them.
 * @throws {InputError} INVALID_OPTION, INVALID_KEY, INVALID_COST, INVALID_DURATION; {PolicyError} INVALID_OPTION for a limiter that was made
 * without `reservations`; {StoreError} under `onStoreError: 'throw'` of a part, and where the store of a semaphore fails.
 */
export async function reserveAll(parts: readonly (ReservePart | PermitPart)[]): Promise<WholeDecision> {
  const permits = checked(parts).filter(isPermitPart)
  for (const permit of permits) checkPermit(permit)
  const keys = parts.filter((part) => !isPermitPart(part)) as readonly ReservePart[]
  for (const key of keys) openedPart(key) // throws before a permit is taken
  return permitsFirst(
    permits,
    () => reserveKeys(keys),
    (...whole) => new WholeDecision(...whole),
  )
}

/**
 * Reserves units of each key, or of none, and reports each decision to its limiter's listeners. First all keys are tried, which
 * charges nothing: parts with the same key and state by one call, for the sum of their costs. If none is denied, each is reserved.
 */
async function reserveKeys(keys: readonly ReservePart[]): Promise<readonly Decision[]> {
  await Promise.all(keys.map(async ({ limiter }) => limiter[UNREAD]))
  const sentAt = performance.now()
  const parts = keys.map(openedPart)
  // Unlike a peek, a try counts refusals for a penalty. What parts of one key reserve together is tried as one.
  const twinsOfParts = parts.map((part) =>
    parts.filter(({ keyspace, key }) => keyspace === part.keyspace && key === part.key),
  )
  const triesByFirstTwin = new Map<OpenedPart, Promise<Answer>>()
  const tries = twinsOfParts.map((twins) => {
    const first = twins[0]!
    const twinsTry = triesByFirstTwin.get(first) ?? tryAll(twins)
    triesByFirstTwin.set(first, twinsTry)
    return twinsTry
  })
  const answers = await Promise.all(tries)
  const uncharged = parts.map(({ set, callerKey }, i) => new Decision(set, answers[i]!, callerKey, undefined))
  const decisions = isWholeDenied(parts, answers) ? uncharged : await reserveEach(parts, uncharged)
  const storeMs = performance.now() - sentAt
  for (const [i, part] of parts.entries())
    part.limiter[REPORT_PART](part, decisions[i]!, parts.length, storeMs)
  return decisions
}

/** Asks whether the parts of a call that have the same key and state (twins) fit together; charges nothing. */
async function tryAll(twins: readonly OpenedPart[]): Promise<Answer> {
  const { keyspace, key } = twins[0]!
  const sum = twins.reduce((total, { cost }) => total + cost, 0)
  return keyspace.decide('try', key, checkCost(sum, 'the sum of the costs of a key'), 0)
}

/**
 * Reserves units of each part, which is one key with its cost, and returns the decisions. If one is denied or fails, the reservations
 * of the others are released, and their decisions are the `uncharged` ones, which an earlier try has made.
 */
async function reserveEach(parts: readonly OpenedPart[], uncharged: readonly Decision[]) {
  const asked = parts.map(async (part) => (await part.limiter[RESERVE_PART](part, part.terms)).decision)
  const reserved = await Promise.allSettled(asked)
  const decisions = reserved.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  if (decisions.length === parts.length && decisions.every(({ allowed }) => allowed)) return decisions
  await Promise.allSettled(decisions.map(async ({ reservation }) => reservation?.release()))
  await Promise.all(asked) // rejects as the first that failed
  return decisions.map((decision, i) => (decision.allowed ? uncharged[i]! : decision))
}

type OpenedPart = ReturnType<typeof openedPart>

/**
 * Checks a part of a reservation on several keys, and opens it: returns its key with the state in which it is charged (`openPart`), its
 * limiter, and the terms on which it reserves, such as for how long.
 */
function openedPart(part: ReservePart) {
  const { limiter, key, ...options } = part ?? {}
  checkLimiter(limiter)
  requireReserving(limiter)
  const terms = reserveOf(options, RESERVED_PART)
  const { policies } = options
  return { ...openPart({ limiter, key, cost: terms.cost, ...(policies && { policies }) }), limiter, terms }
}
