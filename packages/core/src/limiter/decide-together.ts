import type { Answer, MaybePromise } from '../stores/store.js'
import { decideHere, isWholeDenied, prepareOneStep } from '../stores/together.js'
import { HEARS, OPEN_PART, REPORT_PART, UNREAD } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { InputError } from '../values/errors.js'
import { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import { isPromise } from '../values/promises.js'
import type { CallOptions } from './limiter-options.js'
import type { LimiterPart } from './limiter-part.js'

/** One key of a call on several keys, with the options of `consume`. */
export interface PartOptions extends CallOptions {
  readonly limiter: Limiter
  readonly key: string
}

/**
 * Decides a call on several keys, as `consumeAll` does: all are charged, or none. Returns what `combine` makes of the decisions, one
 * for each of the `given` keys in their order. `open` makes a part (a key with its state) of each, and may check it first. If a
 * limiter has yet to read its records (acts of operators, such as overrides), the call waits for that. A single key is decided by
 * its limiter. If a store is elsewhere, its guard decides all keys (`decideParts`); otherwise all are decided here at once.
 */
export function decideTogether<T>(
  given: readonly PartOptions[],
  combine: (decisions: readonly Decision[]) => MaybePromise<T>,
  open = openPart,
): MaybePromise<T> {
  const call = new TogetherCall(given, combine, open)
  const unread = call.mayBeOverridden ? call.unread() : undefined
  if (unread) return decideOnceRead(unread, given, combine, open)
  if (call.parts.length === 1) return decideOne(call, given[0]!)
  const { asked } = call
  for (let i = 0; i < asked.length; i++) if (!asked[i]!.isHere) return decideElsewhere(call, asked[i]!)
  return call.charged(asked.length > 0 ? decideHere(asked) : [], 0)
}

/** Decides as `decideTogether` once the records are read. A function of its own, as a closure there would cost every call. */
function decideOnceRead<T>(unread: Promise<void>, ...call: Parameters<typeof decideTogether<T>>): Promise<T> {
  return unread.then(() => decideTogether(...call))
}

/**
 * Has all parts of a call on several keys decided by the guard (deadline, circuit breaker and failure mode) of one part's `store`,
 * which is not in this process. Returns what the call makes of the answers (`charged`). If a limiter has listeners, they are called
 * in the AsyncLocalStorage context of the caller.
 */
function decideElsewhere<T>(call: TogetherCall<T>, { store }: LimiterPart): MaybePromise<T> {
  const { asked: parts } = call
  const guard = store.guard!
  const haveListeners = parts.some(({ limiter, set }) => limiter[HEARS](set))
  if (!haveListeners) return guard.decideParts(parts, call.charged.bind(call))
  // Answers may come in the AsyncLocalStorage context of another call; a `then` that is made here runs in that of this call.
  const answered = guard.decideParts(parts, (...answered) => answered)
  return isPromise(answered)
    ? Promise.resolve(answered).then((later) => call.charged(...later))
    : call.charged(...answered)
}

/**
 * Tells the store of these limiters beforehand that calls on several keys may use some or all of them, so that it makes one script (or
 * other program) for all such calls. Limiters whose store decides each key by itself are left out.
 */
export function prepareTogether(limiters: readonly Limiter[]): void {
  const parts = limiters.map((limiter) => openPart({ limiter, key: '' }))
  const elsewhere = parts.filter(({ keyspace }) => keyspace.together)
  if (elsewhere.length > 1) prepareOneStep(elsewhere)
}

/** Makes a part, a key with its state, of one key of a call on several. Checks the cost, which is 1 if it is left out. */
export function openPart({ limiter, key, cost = 1, policies }: PartOptions, isNoted = true): LimiterPart {
  return limiter[OPEN_PART](key, checkCost(cost), policies, isNoted)
}

/**
 * Decides a call on several keys that turned out to be about one key, as `consume` does. If the caller's list names the key
 * several times, `parts[0].cost` is the sum, and the one decision stands at each place of the list. Returns what `combine` makes of
 * them.
 */
function decideOne<T>(
  { parts, places, as }: TogetherCall<T>,
  { limiter, key, policies }: PartOptions,
): MaybePromise<T> {
  const decided = limiter.decide(key, { cost: parts[0]!.cost, ...(policies && { policies }) })
  const all = (decision: Decision): MaybePromise<T> => as(places.map(() => decision))
  return 'allowed' in decided ? all(decided) : decided.then(all)
}

/** A call on several keys, and what `combine` makes of its decisions. */
export class TogetherCall<T> {
  /** Each key once. */
  readonly parts: readonly LimiterPart[]
  /** The part of each place in the list of the caller. */
  readonly places: readonly LimiterPart[]
  /** The parts that stores are asked about: those whose keys are not exempt. */
  readonly asked: readonly LimiterPart[]
  /** Whether overrides may concern a part, or the first read of records does. */
  readonly mayBeOverridden: boolean

  /**
   * Makes a part, a key with its state, of each `given` key by `open`. A key that is named again with the same limiter and list
   * of policies (a twin) is no new part: its cost is added to the first. So `parts` has each key once, and `places` the part of
   * each place in the caller's list; they are one list if there are no twins.
   */
  constructor(
    given: readonly PartOptions[],
    readonly as: (decisions: readonly Decision[]) => MaybePromise<T>,
    open: (options: PartOptions) => LimiterPart,
  ) {
    // Lists have their length from the beginning: one that grows takes room for 17 with its first entry.
    const places = Array<LimiterPart>(given.length)
    let areTwins = false
    let mayBeOverridden = false
    for (let i = 0; i < given.length; i++) {
      const part = open(given[i]!)
      const twin = earlierPartOfKey(part, places, i)
      if (twin) twin.cost = checkCost(twin.cost + part.cost, 'the sum of the costs of a key')
      areTwins ||= twin !== undefined
      mayBeOverridden ||= part.mayBeOverridden
      places[i] = twin ?? part
    }
    this.parts = areTwins ? [...new Set(places)] : places
    this.places = places
    this.mayBeOverridden = mayBeOverridden
    this.asked = mayBeOverridden ? this.parts.filter(({ set }) => !set.exempt) : this.parts
  }

  /** A promise that resolves when a limiter that has yet to read its records has read them; undefined if all have. */
  unread(): Promise<void> | undefined {
    for (const { limiter } of this.parts) {
      const unread = limiter[UNREAD]
      if (unread) return unread
    }
    return undefined
  }

  /**
   * Ends the call. Makes a decision about each part of its answer, reports it to the part's limiter, and returns what `combine` makes of
   * all decisions, in the order of the caller's list. `given` are the answers to the parts that were asked; they were charged
   * unless an answer denies the whole call. `storeMs` is the wait for stores elsewhere, in milliseconds.
   */
  charged(given: readonly Answer[], storeMs: number): MaybePromise<T> {
    const { parts } = this
    const answers = given.length === parts.length ? given : withExempt(parts, given)
    const decisions = this.decisions(answers, !isWholeDenied(parts, answers))
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      part.limiter[REPORT_PART](part, decisions[i]!, parts.length, storeMs)
    }
    return this.as(this.placed(decisions))
  }

  /**
   * Makes the decision about each part of its answer. Only if the parts were charged (`areCharged`), `settle` may correct their
   * costs later.
   */
  decisions(answers: readonly Answer[], areCharged: boolean): readonly Decision[] {
    const { parts } = this
    const decisions = Array<Decision>(parts.length)
    for (let i = 0; i < parts.length; i++) {
      const { set, callerKey, cost } = parts[i]!
      decisions[i] = new Decision(set, answers[i]!, callerKey, areCharged ? cost : undefined)
    }
    return decisions
  }

  /**
   * Returns the decisions, given as one a part, in the order of the caller's list. A key that stands there several times is one
   * part, so its decision is repeated.
   */
  placed(decisions: readonly Decision[]): readonly Decision[] {
    const { parts, places } = this
    return parts === places ? decisions : places.map((part) => decisions[parts.indexOf(part)]!)
  }
}

/** Returns the answers to all parts: the next of `given` to a part that was asked, and to one whose key is exempt its own. */
function withExempt(parts: readonly LimiterPart[], given: readonly Answer[]): readonly Answer[] {
  const answers = given.values()
  return parts.map(({ set, keyspace, key, cost }) =>
    set.exempt ? (keyspace.decide('consume', key, cost, 0) as Answer) : answers.next().value!,
  )
}

/**
 * Finds the twin of a part: one among the first `end` places that is charged in the same state, as it has the same key, limiter
 * and list of policies, so that their costs add up. Undefined if there is none.
 * @throws {InputError} INVALID_OPTION if the other is of another limiter or list of policies that shares the state.
 */
function earlierPartOfKey(
  part: LimiterPart,
  places: readonly LimiterPart[],
  end: number,
): LimiterPart | undefined {
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
