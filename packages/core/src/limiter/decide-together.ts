import type { Answer, MaybePromise } from '../stores/store.js'
import { decideHere, isWholeDenied } from '../stores/together.js'
import { OPEN_PART, REPORT_PART } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { InputError } from '../values/errors.js'
import { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import type { CallOptions } from './limiter-options.js'
import type { LimiterPart } from './limiter-part.js'

/** One key of a call on several keys, with the options of `consume`. */
export interface PartOptions extends CallOptions {
  readonly limiter: Limiter
  readonly key: string
}

/**
 * Charges several keys in one decision, as `consumeAll` does, and returns what `as` makes of the decisions of all parts, in
 * their order. `open` may check the parts, which are otherwise known to be right.
 */
export function decideTogether<T>(
  given: readonly PartOptions[],
  as: (decisions: readonly Decision[]) => MaybePromise<T>,
  open = openPart,
): MaybePromise<T> {
  const call = new TogetherCall(given, as, open)
  const { parts } = call
  if (parts.length === 1) return decideOne(call, given[0]!)
  const guard = parts.find(({ isHere }) => !isHere)?.store.guard
  if (!guard) return call.charged(decideHere(parts), 0)
  return guard.decideParts(parts, (answers, storeMs) => call.charged(answers, storeMs))
}

/** Opens one key of a call on several keys with its limiter. Checks the cost, which is 1 if it is not given. */
export function openPart({ limiter, key, cost = 1, policies }: PartOptions): LimiterPart {
  return limiter[OPEN_PART](key, checkCost(cost), policies)
}

/**
 * Decides a call that names only one key, as `consume` does. A key that the caller's list names several times gets
 * its decision at each of these places.
 */
function decideOne<T>(
  { parts, places, as }: TogetherCall<T>,
  { limiter, key, policies }: PartOptions,
): MaybePromise<T> {
  const decided = limiter.decide(key, { cost: parts[0]!.cost, ...(policies && { policies }) })
  const all = (decision: Decision): MaybePromise<T> => as(places.map(() => decision))
  return decided instanceof Promise ? decided.then(all) : all(decided)
}

/** A call on several keys, and what `as` makes of its decisions. */
export class TogetherCall<T> {
  /** Each key once. */
  readonly parts: readonly LimiterPart[]
  /** The part of each place in the list of the caller. */
  readonly places: readonly LimiterPart[]

  /** Opens the part of each key. A key that is named twice with one list of policies is one part of the summed cost. */
  constructor(
    given: readonly PartOptions[],
    readonly as: (decisions: readonly Decision[]) => MaybePromise<T>,
    open: (options: PartOptions) => LimiterPart,
  ) {
    // Lists have their length from the beginning: one that grows takes room for 17 with its first entry.
    const places = Array<LimiterPart>(given.length)
    let areTwins = false
    for (let i = 0; i < given.length; i++) {
      const part = open(given[i]!)
      const twin = twinOf(part, places, i)
      if (twin) twin.cost = checkCost(twin.cost + part.cost, 'the sum of the costs of a key')
      areTwins ||= twin !== undefined
      places[i] = twin ?? part
    }
    this.parts = areTwins ? [...new Set(places)] : places
    this.places = places
  }

  /**
   * Makes the decisions of the store's answers, reports each to its limiter, and returns what `as` makes of them. The
   * keys were charged unless one of the answers denies the whole call. `storeMs` is the wait for stores elsewhere.
   */
  charged(answers: readonly Answer[], storeMs: number): MaybePromise<T> {
    const { parts } = this
    const decisions = this.decisions(answers, !isWholeDenied(parts, answers))
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      part.limiter[REPORT_PART](part, decisions[i]!, parts.length, storeMs)
    }
    return this.as(this.placed(decisions))
  }

  /** The decision about each key. `settle` may correct their costs only if the keys were charged. */
  decisions(answers: readonly Answer[], areCharged: boolean): readonly Decision[] {
    const { parts } = this
    const decisions = Array<Decision>(parts.length)
    for (let i = 0; i < parts.length; i++) {
      const { set, callerKey, cost } = parts[i]!
      decisions[i] = new Decision(set, answers[i]!, callerKey, areCharged ? cost : 'none')
    }
    return decisions
  }

  /** The decisions in the order of the caller's list, in which one key may stand several times. */
  placed(decisions: readonly Decision[]): readonly Decision[] {
    const { parts, places } = this
    return parts === places ? decisions : places.map((part) => decisions[parts.indexOf(part)]!)
  }
}

/**
 * The part among the first `end` places that has the same state as this one, so that their costs add up: it is of the
 * same key and limiter; undefined if there is none.
 * @throws {InputError} INVALID_OPTION if the other is of another limiter or list of policies that shares the state.
 */
function twinOf(part: LimiterPart, places: readonly LimiterPart[], end: number): LimiterPart | undefined {
  for (let i = 0; i < end; i++) {
    const other = places[i]!
    if (other.key !== part.key || other.store !== part.store) continue
    if (other.set.limiter !== part.set.limiter) continue
    if (other.limiter === part.limiter && other.set === part.set) return other
    const why = `limiter '${part.limiter.name}' has the same key in two parts: put their policies into one list`
    throw new InputError('INVALID_OPTION', why)
  }
  return undefined
}
