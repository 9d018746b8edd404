import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer, MaybePromise } from '../stores/store.js'
import { isWholeDenied } from '../stores/together.js'
import { checkContract, OPEN_PART, REPORT_PART } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { expected, InputError } from '../values/errors.js'
import { checkNames, type DeclarationOf, unchecked } from '../values/options.js'
import { decideParts, type LimiterPart } from './decide-parts.js'
import type { Decision } from './decision.js'
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
  const calls = opened(parts)
  if (calls.length === 1) return decideOne(calls[0]!, parts[0]!.policies)
  const asked = decideParts(calls.map(({ part }) => part))
  if (!(asked instanceof Promise)) return wholeOf(calls, asked, 0)
  const begun = performance.now()
  return asked.then((answers) => wholeOf(calls, answers, performance.now() - begun))
}

/** The decision that `consumeAll` would make now. Writes nothing, and asks every store. */
export async function peekAll(parts: readonly PartOptions[]): Promise<WholeDecision> {
  const calls = opened(parts)
  const answers = await Promise.all(
    calls.map(async ({ part: { keyspace, key, cost } }) => keyspace.decide('peek', key, cost, 0)),
  )
  return new WholeDecision(
    calls.map(({ part, places }, i) => ({ decision: part.decisionOf(answers[i]!, false), places })),
  )
}

/** A part, its limiter, and its places in the list of the caller. */
interface PartCall {
  part: LimiterPart
  readonly limiter: Limiter
  readonly places: number[]
}

const PART = {
  limiter: unchecked(),
  key: unchecked(),
  cost: unchecked(),
  policies: unchecked(),
} satisfies DeclarationOf<PartOptions>
const ABOUT_PART = { what: 'a part', error: InputError }
const MOST_PARTS = 16

function opened(parts: readonly PartOptions[]): PartCall[] {
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > MOST_PARTS) {
    const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
    throw expected(InputError, 'INVALID_OPTION', bound, parts)
  }
  const calls: PartCall[] = []
  for (let place = 0; place < parts.length; place++) {
    const part = openedOne(parts[place])
    const { limiter } = parts[place] as PartOptions
    const same = calls.find((call) => haveOneState(call.part, part))
    if (!same) calls.push({ part, limiter, places: [place] })
    else if (same.limiter === limiter && same.part.set === part.set) {
      const cost = checkCost(same.part.cost + part.cost, 'the sum of the costs of a key')
      same.part = part.withCost(cost)
      same.places.push(place)
    } else {
      const why = `limiter '${limiter.name}' has the same key in two parts, under different policies`
      throw new InputError('INVALID_OPTION', `${why}: put them into one list`)
    }
  }
  return calls
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
  { part, limiter, places }: PartCall,
  policies: readonly Policy[] | undefined,
): MaybePromise<WholeDecision> {
  const decided = limiter.decide(part.callerKey, { cost: part.cost, ...(policies && { policies }) })
  const whole = (decision: Decision): WholeDecision => new WholeDecision([{ decision, places }])
  return decided instanceof Promise ? decided.then(whole) : whole(decided)
}

function wholeOf(calls: readonly PartCall[], answers: readonly Answer[], storeMs: number): WholeDecision {
  const parts = calls.map(({ part }) => part)
  const isAllowed = !isWholeDenied(parts, answers)
  const decided = calls.map(({ part, limiter, places }, i) => {
    const decision = part.decisionOf(answers[i]!, isAllowed)
    limiter[REPORT_PART](part, decision, calls.length, storeMs)
    return { decision, places }
  })
  return new WholeDecision(decided)
}
