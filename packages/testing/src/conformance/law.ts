import { deepStrictEqual } from 'node:assert'
import type { Policy } from '@sluice/core'
import type { Answer } from '@sluice/core/store'
import * as fc from 'fast-check'
import { operationOf } from './operation.js'
import { options } from './numbers.js'
import type { Options } from './rule.js'
import { type Caller, type OpenStore, type Returned, Session } from './session.js'
import type { Shape } from './shapes.js'
import { HISTORY, starts, type Step, traffic } from './traffic.js'

/** The store that a law is tried on, and how often. */
export interface Trial {
  readonly openStore: OpenStore
  readonly runs: number
  readonly seed: number | undefined
}

/** An algorithm on that store. */
export interface Subject extends Trial {
  readonly shape: Shape
  /** Every shape there is, for laws about lists of policies. */
  readonly shapes: readonly Shape[]
  /** Largest cost that the store takes for this shape, alone and beside another. */
  readonly mostCost: number
  readonly mostCostWith: (other: Shape) => number
}

/** Numbers of one shape and what one key went through with them. */
export interface Past {
  readonly options: Options
  readonly start: number
  readonly steps: readonly Step[]
}

/** The longest wait of a booking that may wait as long as it has to, in microseconds: 35 years. */
export const ANY_WAIT = 2 ** 50

/** Only a store that hangs takes so long: on a busy machine one law of Postgres may take more than a minute. */
const LIMIT_MS = 300_000

/**
 * Declares one law as a test: `check` is called `runs` times, each time with a value that is drawn anew and a session, that is a
 * store of its own on a clock that starts at `value.start`. It throws where the store breaks the law. With a `seed` the draws of
 * an earlier run are repeated.
 */
export function law<T extends Pick<Past, 'start'>>(
  { openStore, runs: numRuns, seed }: Trial,
  name: string,
  drawn: fc.Arbitrary<T>,
  check: (session: Session, value: T) => Promise<void>,
): void {
  const property = fc.asyncProperty(drawn, async (value) => {
    const session = await Session.open(openStore, value.start)
    try {
      await check(session, value)
    } finally {
      await session.close()
    }
  })
  it(name, () => fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) }), LIMIT_MS)
}

/** A key's policy, and all that was drawn for a law about it. */
type Given<T> = T & { readonly session: Session; readonly policy: Policy }

/**
 * Returns two functions that declare laws about keys of one policy: `lawOfKey` about one key, `lawOfTwins` about two. In each run the
 * keys are new and get the calls of a drawn past (`steps`) first; then the law is checked with the callers of the keys, and with
 * all that was drawn as `given`.
 */
export function lawsAfter<T extends Past>(subject: Subject, drawn: fc.Arbitrary<T>) {
  /**
   * Makes one or two new keys of the drawn policy, each with its caller, and carries out the drawn calls on each of them, so that
   * a law can compare the keys.
   */
  async function keysOf(count: 1 | 2, session: Session, value: T) {
    const policy = subject.shape.factory(value.options)
    const callers = Array.from({ length: count }, () => session.caller([policy]))
    await replay(subject, value.steps, ...callers)
    return { callers, given: { ...value, session, policy } }
  }

  return {
    /** Declares a law about one key. `check` gets its caller, with the past behind it, and throws where the law is broken. */
    lawOfKey(name: string, check: (caller: Caller, given: Given<T>) => Promise<void>): void {
      law(subject, name, drawn, async (session, value) => {
        const { callers, given } = await keysOf(1, session, value)
        await check(callers[0]!, given)
      })
    },
    /**
     * Declares a law about two keys with the same past. `check` does to one of them what must leave no trace, or to both in
     * different ways what must come to the same: afterwards both must give the same answers, now and later.
     */
    lawOfTwins(name: string, check: (one: Caller, other: Caller, given: Given<T>) => Promise<void>): void {
      law(subject, name, drawn, async (session, value) => {
        const { callers, given } = await keysOf(2, session, value)
        const [one, other] = callers as [Caller, Caller]
        await check(one, other, given)
        await expectEqualKeys(one, other)
      })
    },
  }
}

/** Draws what one key went through before a law is checked: options of a policy, an instant to start at, and at most 8 calls. */
export function afterCalls({ shape }: Subject, kinds = HISTORY): fc.Arbitrary<Past> {
  return fc.record({ options: options(shape), start: starts, steps: traffic({ kinds, most: 8 }) })
}

/**
 * Carries out the same calls on the key of each caller, so that all keys have the same history. Some numbers of a step come from the
 * answer before it, such as "as much as remains": the first caller's answers set them for all. It peeks before each step, as some operations have no
 * answer.
 */
export async function replay(subject: Subject, steps: readonly Step[], ...callers: readonly Caller[]) {
  const [guide] = callers as [Caller]
  for (const step of steps) {
    await guide.peek(1)
    const operation = operationOf(step, guide.session.now, guide.tiers[0]!, guide.known, subject.mostCost)
    for (const caller of callers) await caller.perform(operation)
  }
}

const MOST_INSTANTS = 50

/**
 * Asserts that two keys of one session give the same answers to `peek`, for costs of 0, 1, half and all of the capacity: now, and
 * at every later instant that one of the answers names as its `at` or `resetAt`. Ends after the last of them, at which the key is
 * full again.
 * @throws {Error} if answers go on naming later instants at the 50th, as a key that nothing charges must fill up.
 */
export async function expectEqualKeys(a: Caller, b: Caller): Promise<void> {
  const announced = new Set<number>()
  for (let visits = 0; visits < MOST_INSTANTS; visits++) {
    for (const { at, resetAt } of await expectEqualAnswers(a, b)) announced.add(at).add(resetAt)
    const next = Math.min(...[...announced].filter((at) => at > a.session.now))
    if (next === Infinity) return
    a.session.now = next
  }
  throw new Error(`the key is not full again after ${MOST_INSTANTS} announced instants`)
}

/**
 * Asserts that two keys of one session give the same answers to `peek` now, for costs of 0, 1, half and all of the capacity.
 * Returns the answers.
 */
export async function expectEqualAnswers(a: Caller, b: Caller): Promise<readonly Answer[]> {
  const capacity = a.tiers[0]![0]!.capacity
  const answers: Answer[] = []
  for (const cost of new Set([0, 1, Math.ceil(capacity / 2), capacity])) {
    const answer = await a.peek(cost)
    deepStrictEqual(comparable(answer), comparable(await b.peek(cost)))
    answers.push(answer)
  }
  return answers
}

/**
 * The result of an operation, as far as two equal keys, or two stores, must agree on it. Of a booking only the instant is left,
 * since a booking names its key. The policies' numbers become a plain array. `nextUnitAt`, which not every store reports, and
 * `epoch`, which names one store's state, are left out. `blockedUntil` is always there, as a store may leave the field out or set it to undefined. A number is how many units
 * a correction gave or took: it becomes undefined, so that laws do not compare it. The comparison of stores with the model
 * (`expectModelled`) does. A boolean or undefined is returned as it is.
 */
export function comparable(answer: Returned): unknown {
  if (typeof answer === 'number') return undefined
  if (typeof answer !== 'object') return answer
  const { booking, parts, used, nextUnitAt: _nextUnitAt, epoch: _epoch, blockedUntil, ...rest } = answer
  return { ...rest, blockedUntil, parts: parts && [...parts], used: used && [...used], booked: booking?.at }
}
