import type { Answer, MaybePromise } from '../stores/store.js'
import { isWholeDenied } from '../stores/together.js'
import { checkContract, OPEN_PART, REPORT_PART } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { expected, InputError } from '../values/errors.js'
import { checkNames, type DeclarationOf, unchecked } from '../values/options.js'
import { decideParts, type LimiterPart } from './decide-parts.js'
import { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import type { CallOptions } from './limiter-options.js'
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
  if (whole.parts.length === 1) return decideOne(whole, parts[0]!)
  const asked = decideParts(whole.parts)
  if (!(asked instanceof Promise)) return decisionOf(whole, asked, 0)
  const begun = performance.now()
  return asked.then((answers) => decisionOf(whole, answers, performance.now() - begun))
}

/** The decision that `consumeAll` would make now. Writes nothing, and asks every store. */
export async function peekAll(parts: readonly PartOptions[]): Promise<WholeDecision> {
  const whole = opened(parts)
  const peeked = whole.parts.map(async ({ keyspace, key, cost }) => keyspace.decide('peek', key, cost, 0))
  for (const [i, answer] of (await Promise.all(peeked)).entries()) {
    const part = whole.parts[i]!
    part.decision = new Decision(part.set, answer, part.callerKey, 'none')
  }
  return new WholeDecision(whole.places.map(({ decision }) => decision!))
}

/** The parts of a call, each key once, with the limiter of each. `places` has the part of each place in the list of the caller. */
interface Whole {
  readonly parts: readonly LimiterPart[]
  readonly limiters: readonly Limiter[]
  readonly places: readonly LimiterPart[]
}

const PART = {
  limiter: unchecked(),
  key: unchecked(),
  cost: unchecked(),
  policies: unchecked(),
} satisfies DeclarationOf<PartOptions>
const ABOUT_PART = { what: 'a part', error: InputError }
const MOST_PARTS = 16

function opened(given: readonly PartOptions[]): Whole {
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_PARTS) {
    const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
    throw expected(InputError, 'INVALID_OPTION', bound, given)
  }
  const parts: LimiterPart[] = []
  const limiters: Limiter[] = []
  const places: LimiterPart[] = []
  for (const options of given as readonly PartOptions[]) {
    const part = openedOne(options)
    const { limiter } = options
    const i = parts.findIndex((other) => haveOneState(other, part))
    const same = parts[i]
    places.push(same ?? part)
    if (!same) {
      parts.push(part)
      limiters.push(limiter)
    } else if (limiters[i] === limiter && same.set === part.set) {
      same.cost = checkCost(same.cost + part.cost, 'the sum of the costs of a key')
    } else {
      const why = `limiter '${limiter.name}' has the same key in two parts, under different policies`
      throw new InputError('INVALID_OPTION', `${why}: put them into one list`)
    }
  }
  return { parts, limiters, places }
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

/** Two limiters of one store and name share their states. */
function haveOneState(one: LimiterPart, other: LimiterPart): boolean {
  return one.key === other.key && one.store === other.store && one.set.limiter === other.set.limiter
}

/** A single part is decided as by `consume`. */
function decideOne(
  { parts, places }: Whole,
  { limiter, key, policies }: PartOptions,
): MaybePromise<WholeDecision> {
  const decided = limiter.decide(key, { cost: parts[0]!.cost, ...(policies && { policies }) })
  const whole = (decision: Decision): WholeDecision => new WholeDecision(places.map(() => decision))
  return decided instanceof Promise ? decided.then(whole) : whole(decided)
}

function decisionOf(
  { parts, limiters, places }: Whole,
  answers: readonly Answer[],
  storeMs: number,
): WholeDecision {
  const isAllowed = !isWholeDenied(parts, answers)
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!
    const { set, callerKey, cost } = part
    part.decision = new Decision(set, answers[i]!, callerKey, isAllowed ? cost : 'none')
    limiters[i]![REPORT_PART](part, part.decision, parts.length, storeMs)
  }
  return new WholeDecision(places.map(({ decision }) => decision!))
}
