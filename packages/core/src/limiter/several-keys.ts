import type { Answer, MaybePromise, StoreGuard, WholeReceiver } from '../stores/store.js'
import { decideHere, isWholeDenied } from '../stores/together.js'
import { checkContract, OPEN_PART, REPORT_PART } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { expected, InputError } from '../values/errors.js'
import { checkNames, type DeclarationOf, unchecked } from '../values/options.js'
import { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import type { CallOptions } from './limiter-options.js'
import type { LimiterPart } from './limiter-part.js'
import { WholeDecision } from './whole-decision.js'

/** One key of a call on several keys, with the options of `consume`. */
export interface PartOptions extends CallOptions {
  readonly limiter: Limiter
  readonly key: string
}

/**
 * Charges several keys in one decision: all of them admit the call, or none is charged. The parts may be of one or several
 * limiters and stores. The same limiter, key and list of policies twice is one part of the summed cost.
 *
 * In one step of one program, so that no other call is decided in between: in memory, on one machine, and on one Redis server,
 * there in one round trip. Across the slots of a Cluster, or across stores: all are tried, and charged if all admit the call,
 * in two round trips. If another call was faster in between, the charges are undone before the result is known; of a debt, what
 * drained meanwhile stays charged, and so do charges that a store which fails cannot undo.
 * @throws {InputError} INVALID_OPTION, INVALID_KEY, INVALID_COST. {StoreError} under `onStoreError: 'throw'` of a part.
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
export function consumeAll(parts: readonly PartOptions[]): Promise<WholeDecision> {
  try {
    return Promise.resolve(decideAll(parts))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** As `consumeAll`, but returns a promise only if an answer comes from another process. */
export function decideAll(given: readonly PartOptions[]): MaybePromise<WholeDecision> {
  const whole = opened(given)
  const { parts } = whole
  if (parts.length === 1) return decideOne(whole, given[0]!)
  const guard = guardOf(parts)
  if (guard) return decideLater(whole, guard)
  return whole.charged(decideHere(parts), 0)
}

/** The decision that `consumeAll` would make now. Writes nothing, and asks every store. */
export async function peekAll(given: readonly PartOptions[]): Promise<WholeDecision> {
  const whole = opened(given)
  const peeked = whole.parts.map(async ({ keyspace, key, cost }) => keyspace.decide('peek', key, cost, 0))
  return whole.decisionOf(whole.decisions(await Promise.all(peeked), false))
}

const PART = {
  limiter: unchecked(),
  key: unchecked(),
  cost: unchecked(),
  policies: unchecked(),
} satisfies DeclarationOf<PartOptions>
const ABOUT_PART = { what: 'a part', error: InputError }
const MOST_PARTS = 16

function opened(given: readonly PartOptions[]): OpenWhole {
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_PARTS) {
    const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
    throw expected(InputError, 'INVALID_OPTION', bound, given)
  }
  // Lists have their length from the beginning: one that grows takes room for 17 with its first entry.
  const places = Array<LimiterPart>(given.length)
  let areTwins = false
  for (let i = 0; i < given.length; i++) {
    const part = openedOne(given[i] as PartOptions)
    const twin = twinOf(part, places, i)
    if (twin) twin.cost = checkCost(twin.cost + part.cost, 'the sum of the costs of a key')
    areTwins ||= twin !== undefined
    places[i] = twin ?? part
  }
  return new OpenWhole(areTwins ? [...new Set(places)] : places, places)
}

function openedOne(options: PartOptions): LimiterPart {
  if (!hasOnlyNames(options)) checkNames(PART, options, ABOUT_PART)
  const { limiter, key, cost = 1, policies } = options
  if (typeof limiter?.[OPEN_PART] !== 'function') {
    throw expected(InputError, 'INVALID_OPTION', 'limiter of a part must be made by createLimiter()', limiter)
  }
  checkContract('a limiter', limiter)
  return limiter[OPEN_PART](key, checkCost(cost), policies)
}

/** Whether there is no name but those of a part. To count them takes a quarter of what `checkNames` takes. */
function hasOnlyNames(options: PartOptions): boolean {
  if (!options) return false
  let others = 0
  for (const name in options) if (name) others++
  if (options.limiter !== undefined) others--
  if (options.key !== undefined) others--
  if (options.cost !== undefined) others--
  if (options.policies !== undefined) others--
  return others === 0
}

/** The part among the first `end` that has the state of this one: two limiters of one store and name share their states. */
function twinOf(part: LimiterPart, places: readonly LimiterPart[], end: number): LimiterPart | undefined {
  for (let i = 0; i < end; i++) {
    const other = places[i]!
    if (other.key !== part.key || other.store !== part.store) continue
    if (other.set.limiter !== part.set.limiter) continue
    if (other.limiter === part.limiter && other.set === part.set) return other
    const why = `limiter '${part.limiter.name}' has the same key in two parts, under different policies`
    throw new InputError('INVALID_OPTION', `${why}: put them into one list`)
  }
  return undefined
}

/** A single part is decided as by `consume`. */
function decideOne(
  { parts, places }: OpenWhole,
  { limiter, key, policies }: PartOptions,
): MaybePromise<WholeDecision> {
  const decided = limiter.decide(key, { cost: parts[0]!.cost, ...(policies && { policies }) })
  const whole = (decision: Decision): WholeDecision => new WholeDecision(places.map(() => decision))
  return decided instanceof Promise ? decided.then(whole) : whole(decided)
}

/** The guard of a store elsewhere; undefined if all parts are decided here. */
function guardOf(parts: readonly LimiterPart[]): StoreGuard | undefined {
  for (const { isHere, store } of parts) if (!isHere) return store.guard
  return undefined
}

/** A call on several keys. */
class OpenWhole {
  /** `parts` has each key once, `places` the part of each place in the list of the caller. */
  constructor(
    readonly parts: readonly LimiterPart[],
    readonly places: readonly LimiterPart[],
  ) {}

  /** The decision of these answers, for which the parts were charged if the whole passes. Each part is reported. */
  charged(answers: readonly Answer[], storeMs: number): WholeDecision {
    const { parts } = this
    const decisions = this.decisions(answers, !isWholeDenied(parts, answers))
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      part.limiter[REPORT_PART](part, decisions[i]!, parts.length, storeMs)
    }
    return this.decisionOf(decisions)
  }

  /** The decisions of the parts. Those that were not charged cannot be settled. */
  decisions(answers: readonly Answer[], areCharged: boolean): readonly Decision[] {
    const { parts } = this
    const decisions = Array<Decision>(parts.length)
    for (let i = 0; i < parts.length; i++) {
      const { set, callerKey, cost } = parts[i]!
      decisions[i] = new Decision(set, answers[i]!, callerKey, areCharged ? cost : 'none')
    }
    return decisions
  }

  /** The decision about all, which has that of a part at each of its places. */
  decisionOf(decisions: readonly Decision[]): WholeDecision {
    const { parts, places } = this
    if (parts === places) return new WholeDecision(decisions)
    return new WholeDecision(places.map((part) => decisions[parts.indexOf(part)]!))
  }
}

/** Asks the guard of a store elsewhere: the decision if it is known now, otherwise its promise. */
function decideLater(whole: OpenWhole, guard: StoreGuard): MaybePromise<WholeDecision> {
  const { parts } = whole
  const sentAt = performance.now()
  let settle!: { resolve(decision: WholeDecision): void; failed(error: unknown): void }
  const receiver: WholeReceiver = {
    answered(answers) {
      if (!answers) return guard.decideApart(parts, receiver) // these keys cannot go together
      try {
        settle.resolve(whole.charged(answers, performance.now() - sentAt))
      } catch (error) {
        settle.failed(error)
      }
    },
    failed: (error) => settle.failed(error),
  }
  const answers = guard.decideParts(parts, receiver)
  if (answers) return whole.charged(answers, 0)
  return new Promise((resolve, failed) => (settle = { resolve, failed }))
}
