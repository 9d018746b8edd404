import type { Answer, MaybePromise, StoreGuard, WholeReceiver } from '../stores/store.js'
import { decideAtOnce, isWholeDenied } from '../stores/together.js'
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
export function decideAll(parts: readonly PartOptions[]): MaybePromise<WholeDecision> {
  const whole = opened(parts)
  return whole.parts.length === 1 ? decideOne(whole, parts[0]!) : whole.decide()
}

/** The decision that `consumeAll` would make now. Writes nothing, and asks every store. */
export async function peekAll(parts: readonly PartOptions[]): Promise<WholeDecision> {
  const whole = opened(parts)
  const peeked = whole.parts.map(async ({ keyspace, key, cost }) => keyspace.decide('peek', key, cost, 0))
  return whole.decisionOf(await Promise.all(peeked))
}

const PART = {
  limiter: unchecked(),
  key: unchecked(),
  cost: unchecked(),
  policies: unchecked(),
} satisfies DeclarationOf<PartOptions>
const ABOUT_PART = { what: 'a part', error: InputError }
const MOST_PARTS = 16

function opened(given: readonly PartOptions[]): LaterWholeDecision {
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_PARTS) {
    const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
    throw expected(InputError, 'INVALID_OPTION', bound, given)
  }
  const parts: LimiterPart[] = []
  let places: LimiterPart[] | undefined
  for (let i = 0; i < given.length; i++) {
    const part = openedOne(given[i] as PartOptions)
    const same = twinOf(part, parts)
    if (same) {
      same.cost = checkCost(same.cost + part.cost, 'the sum of the costs of a key')
      places ??= parts.slice()
    } else parts.push(part)
    places?.push(same ?? part)
  }
  return new LaterWholeDecision(parts, places ?? parts)
}

function openedOne(options: PartOptions): LimiterPart {
  checkNames(PART, options, ABOUT_PART)
  const { limiter, key, cost = 1, policies } = options
  if (typeof limiter?.[OPEN_PART] !== 'function') {
    throw expected(InputError, 'INVALID_OPTION', 'limiter of a part must be made by createLimiter()', limiter)
  }
  checkContract('a limiter', limiter)
  return limiter[OPEN_PART](key, checkCost(cost), policies)
}

/** The part that has the state of this one: two limiters of one store and name share their states. */
function twinOf(part: LimiterPart, parts: readonly LimiterPart[]): LimiterPart | undefined {
  for (const other of parts) {
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
  { parts, places }: LaterWholeDecision,
  { limiter, key, policies }: PartOptions,
): MaybePromise<WholeDecision> {
  const decided = limiter.decide(key, { cost: parts[0]!.cost, ...(policies && { policies }) })
  const whole = (decision: Decision): WholeDecision => new WholeDecision(places.map(() => decision))
  return decided instanceof Promise ? decided.then(whole) : whole(decided)
}

/** One call on several keys, from its parts to its decision, and the one promise of it. */
class LaterWholeDecision implements WholeReceiver {
  #sentAt = 0
  #resolve!: (whole: WholeDecision) => void
  #reject!: (error: unknown) => void

  /** `parts` has each key once, `places` the part of each place in the list of the caller. */
  constructor(
    readonly parts: readonly LimiterPart[],
    readonly places: readonly LimiterPart[],
  ) {}

  /** The decision, or a promise for it where a store elsewhere decides. */
  decide(): MaybePromise<WholeDecision> {
    const guard = this.#guard
    const answers = guard ? guard.decideParts(this.parts, this) : decideAtOnce(this.parts)
    if (answers) return this.#charged(answers, 0)
    this.#sentAt = performance.now()
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Resolves the promise with the decision of these answers. Without answers the parts cannot go together. */
  answered(answers: readonly Answer[] | undefined): void {
    if (!answers) return this.#guard!.decideApart(this.parts, this)
    try {
      this.#resolve(this.#charged(answers, performance.now() - this.#sentAt))
    } catch (error) {
      this.#reject(error)
    }
  }

  failed(error: unknown): void {
    this.#reject(error)
  }

  /** The guard of a store elsewhere; undefined if all parts are decided here. */
  get #guard(): StoreGuard | undefined {
    for (const { isHere, store } of this.parts) if (!isHere) return store.guard
    return undefined
  }

  /** The decision of these answers, for which the parts were charged if the whole passes. Each part is reported. */
  #charged(answers: readonly Answer[], storeMs: number): WholeDecision {
    const { parts } = this
    const whole = this.decisionOf(answers, !isWholeDenied(parts, answers))
    for (const part of parts) part.limiter[REPORT_PART](part, part.decision!, parts.length, storeMs)
    return whole
  }

  /** The decision of these answers. One that was not charged cannot be settled. */
  decisionOf(answers: readonly Answer[], isCharged = false): WholeDecision {
    const { parts, places } = this
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      part.decision = new Decision(part.set, answers[i]!, part.callerKey, isCharged ? part.cost : 'none')
    }
    const decisions: Decision[] = []
    for (const { decision } of places) decisions.push(decision!)
    return new WholeDecision(decisions)
  }
}
