import * as fc from 'fast-check'
import type { Answer, Penalty } from '@sluice/core/store'
import { type Operation, operationOf } from './operation.js'
import type { Charged, Expected } from './expected.js'
import { KeyModel } from './model.js'
import { penalties, tiers } from './numbers.js'
import { type Rule, ruleOf } from './rule.js'
import { type OpenStore, type Returned, Session } from './session.js'
import type { Shape } from './shapes.js'
import { type Kind, starts, type Step, traffic } from './traffic.js'

/** One or several policies, two sets of numbers for each, and what is done with them. */
export interface Scenario {
  readonly shapes: readonly Shape[]
  readonly numbers: readonly (readonly Parameters<Shape['factory']>[0][])[]
  /** For each set of numbers the penalty that its calls come with. */
  readonly penalties: readonly (Penalty | undefined)[]
  readonly start: number
  readonly steps: readonly Step[]
}

const TIERS = 2
/** In place of the index of a booking or a charge. */
const NONE = -1
const KINDS = {
  consume: 40,
  peek: 8,
  book: 20,
  cancel: 8,
  refund: 8,
  release: 16,
  charge: 8,
  hold: 2,
  block: 1,
  reset: 1,
}
/** Operations without an answer, which are followed by a look at the key. */
const WITHOUT_ANSWER: ReadonlySet<Kind> = new Set([
  'cancel',
  'refund',
  'release',
  'charge',
  'hold',
  'block',
  'reset',
])

/**
 * Draws scenarios: random calls on one key whose policies have these shapes (algorithms in a variant), in this order. Each policy
 * gets numbers for two tiers, sets of a limit and a capacity of which each call brings one. Each tier gets a penalty or none;
 * without `hasPenalties` always none. `chain`, because the numbers that a shape takes are known only once it is drawn.
 */
export function scenarios(
  shapes: fc.Arbitrary<readonly Shape[]>,
  hasPenalties: boolean,
): fc.Arbitrary<Scenario> {
  const penalty = hasPenalties ? fc.option(penalties, { freq: 2, nil: undefined }) : fc.constant(undefined)
  return shapes.chain((list) =>
    fc.record({
      shapes: fc.constant(list),
      numbers: fc.tuple(...list.map((shape) => tiers(shape, TIERS, 'in all'))),
      penalties: fc.tuple(...Array.from({ length: TIERS }, () => penalty)),
      start: starts,
      steps: traffic({ kinds: KINDS, tiers: TIERS, most: 16 }),
    }),
  )
}

type MostCost = (shapes: readonly Shape[]) => number

/**
 * Plays one scenario on the store and on the model, which is the contract written out naively, and compares each answer, to the
 * microsecond. `mostCostOf` returns the largest cost that the store takes for a list of shapes. A drawn step becomes a call with
 * numbers only here, as they depend on the answers so far (as much as remains, the instant that was announced). Operations that
 * return no answer are followed by a `peek` that shows the state of the key. In the end a `peek` under each tier asks for the
 * whole capacity, or the most that the store takes.
 * @throws {Error} with all operations so far, at the first answer that differs.
 */
export async function expectModelled(
  openStore: OpenStore,
  scenario: Scenario,
  mostCostOf: MostCost,
): Promise<void> {
  const { shapes, numbers, penalties, start, steps } = scenario
  const mostCost = mostCostOf(shapes)
  const session = await Session.open(openStore, start)
  const tierNumbers = Array.from({ length: TIERS }, (_, tier) => tier)
  const policies = tierNumbers.map((tier) => shapes.map((shape, i) => shape.factory(numbers[i]![tier]!)))
  const rules = tierNumbers.map((tier) => shapes.map(({ model }, i) => ruleOf(model, numbers[i]![tier]!)))
  const caller = session.callerUnder(penalties, ...policies)
  const model = new ModelCaller(rules, penalties)
  const trace: string[] = []
  try {
    /** Carries out an operation on the store and on the model, and compares the results. An error lists all operations so far. */
    const compare = async (operation: Operation) => {
      trace.push(JSON.stringify(operation))
      expectSame(await caller.perform(operation), model.perform(operation), trace)
    }
    for (const step of steps) {
      const operation = operationOf(step, session.now, policies[step.tier]!, caller.known, mostCost)
      await compare(operation)
      if (WITHOUT_ANSWER.has(operation.kind)) await compare({ ...operation, kind: 'peek', cost: 1 })
    }
    for (const tier of tierNumbers) {
      const cost = Math.min(policies[tier]![0]!.capacity, mostCost)
      await compare({ kind: 'peek', now: session.now, tier, cost, maxWait: 0, booking: NONE, charge: NONE })
    }
  } finally {
    await session.close()
  }
}

/** The model of one key, with the bookings and charges so far, on which the operations of the store are carried out too. */
class ModelCaller {
  readonly #key = new KeyModel()
  readonly #rules: readonly (readonly Rule[])[]
  readonly #penalties: Scenario['penalties']
  readonly #bookings: NonNullable<Expected['booking']>[] = []
  readonly #charges: Charged[] = []

  /**
   * Makes a model of one key from which nothing has been consumed, with which a store's answers are compared. Calls of tier i, such as
   * the free plan of a service, are decided by the policies `rules[i]`, and by the penalty `penalties[i]` if there is one: it counts
   * denials, and blocks the key after some of them.
   */
  constructor(rules: readonly (readonly Rule[])[], penalties: Scenario['penalties']) {
    this.#rules = rules
    this.#penalties = penalties
  }

  /**
   * Carries out an operation on the model. Returns what the store has to return: an answer; of a `cancel` whether the key is as
   * before the booking; of a correction the units that take effect. `operation.booking` and `operation.charge` are indexes of the
   * bookings made so far and of the charges that gave nothing back yet, below 0 for none; a block and a hold last for `maxWait`
   * microseconds. A charge is released once: it leaves the list. The model counts in BigInt, so the numbers are converted first.
   */
  perform(operation: Operation): Expected | boolean | number | void {
    const [now, cost, maxWait] = [BigInt(operation.now), BigInt(operation.cost), BigInt(operation.maxWait)]
    const [rules, penalty] = [this.#rules[operation.tier]!, this.#penalties[operation.tier]]
    const booking = this.#bookings[operation.booking]
    if (operation.kind === 'book') {
      const answer = this.#key.book(rules, now, cost, maxWait, penalty)
      if (answer.booking) this.#bookings.push(answer.booking)
      this.#note(answer, cost)
      return answer
    }
    if (operation.kind === 'consume') {
      const answer = this.#key.consume(rules, now, cost, penalty)
      this.#note(answer, cost)
      return answer
    }
    if (operation.kind === 'cancel') return this.#cancel(now, booking)
    if (operation.kind === 'release') {
      const [charge] = operation.charge < 0 ? [] : this.#charges.splice(operation.charge, 1)
      return charge ? this.#key.release(rules, now, charge, cost) : 0
    }
    if (operation.kind === 'reset') return this.#key.reset()
    if (operation.kind === 'block' || operation.kind === 'hold')
      return this.#key[operation.kind](now, maxWait)
    if (operation.kind === 'peek') return this.#key.peek(rules, now, cost)
    return this.#key[operation.kind](rules, now, cost)
  }

  /**
   * Cancels a booking. Returns true if the key is as if it had never been booked, false if its units were released instead, and
   * undefined, with nothing done, if there is no such booking or its units were given back before. A booking stands in the list
   * of charges as long as it gave nothing back.
   */
  #cancel(now: bigint, booking: Expected['booking']): boolean | void {
    const i = booking ? this.#charges.indexOf(booking) : -1
    if (i < 0) return
    this.#charges.splice(i, 1)
    return this.#key.cancel(now, booking!)
  }

  /**
   * Notes the charge of an admitted call, so that a later operation can release it; a denied call and a cost of 0 charge nothing.
   * A booking is noted as the object that it is: by that, `#cancel` finds out whether it was released.
   */
  #note(answer: Expected, cost: bigint): void {
    if (answer.reason !== undefined || cost === 0n) return
    this.#charges.push(answer.booking ?? { at: BigInt(answer.at), cost, decidedAt: BigInt(answer.now) })
  }
}

const FIELDS = ['now', 'at', 'reason', 'binding', 'remaining', 'resetAt', 'parts', 'used', 'booking'] as const

/**
 * Compares a result of the store with that of the model: two answers field by field, other results (a boolean, units, undefined)
 * as they are. `trace` holds the operations so far, as text.
 * @throws {Error} with the trace and every field that differs, one a line.
 */
function expectSame(actual: Returned, expected: Expected | boolean | number | void, trace: string[]): void {
  if (typeof actual !== 'object' || typeof expected !== 'object') {
    if (actual === expected) return
    throw new Error(
      [...trace, `${JSON.stringify(actual)} came where the model says ${JSON.stringify(expected)}`].join(
        '\n',
      ),
    )
  }
  const differences = FIELDS.filter((field) => shown(actual, field) !== shown(expected, field)).map(
    (field) => `${field} is ${shown(actual, field)} where the model says ${shown(expected, field)}`,
  )
  if (differences.length > 0) throw new Error([...trace, ...differences].join('\n'))
}

/**
 * A field of an answer as text, to be compared and shown. Of a booking it is the instant alone, since a store may add fields of
 * its own to its bookings; 'undefined' without one.
 */
function shown(answer: Answer | Expected, field: (typeof FIELDS)[number]): string {
  const value = field === 'booking' ? answer.booking && Number(answer.booking.at) : answer[field]
  return String(value)
}
