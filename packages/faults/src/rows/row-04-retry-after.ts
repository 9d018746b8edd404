import { strict as assert } from 'node:assert'
import { randomInt } from 'node:crypto'
import {
  mostCost,
  type Operation,
  operationOf,
  type OpenStore,
  type Returned,
  type Scenario,
  Session,
} from '@sluice/testing/internal'
import type { Answer } from '../../../core/src/stores/store.js'
import type { Outcome, Row } from '../row.js'
import { openGrounds, play } from '../scenarios/sequences.js'

/** A denied call that waits for `retryAfterMs` is admitted, and one that comes a tick earlier is not. */
export const row: Row = { number: 4, fault: 'retryAfter', run: wait }

/**
 * Plays random sequences of calls, and checks of every denial that the wait it named was right: denied until then, allowed
 * exactly then. `share` is the part of the full load, 0 to 1.
 */
async function wait(share: number): Promise<Outcome> {
  const sequences = Math.ceil(10_000 * share)
  const { shapes, stores, end } = await openGrounds()
  const seed = randomInt(2 ** 31)
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    let [kept, weighted] = [0, 0]
    const { played, wrong } = await play(shapes, { sequences, seed }, async (scenario) => {
      for (const denial of await denialsIn(openStore, scenario)) {
        await expectKept(openStore, scenario, denial)
        kept++
        if (scenario.shapes.some(({ variant }) => variant.count === 'weighted')) weighted++
      }
    })
    pass &&= wrong === undefined && played >= sequences && weighted > 0
    figures.push(
      `${where} ${kept} in ${played} sequences (${weighted} under weighted windows)${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  await end()
  return {
    pass,
    figure: `denials admitted at the instant they named and not a tick before: ${figures.join('; ')}`,
  }
}

/** A call that was denied until `at`, and all calls before it. */
interface Denial {
  readonly before: readonly Operation[]
  readonly denied: Operation
  readonly at: number
}

/** The denials in one sequence of calls, each with the calls before it, so that it can be played again up to there. */
async function denialsIn(openStore: OpenStore, scenario: Scenario): Promise<Denial[]> {
  const [session, caller] = await begin(openStore, scenario)
  const denials: Denial[] = []
  const operations: Operation[] = []
  for (const step of scenario.steps) {
    const operation = operationOf(
      step,
      session.now,
      caller.tiers[step.tier]!,
      caller.known,
      mostCost(scenario.shapes),
    )
    const answer = await caller.perform(operation)
    if (isDenial(answer)) denials.push({ before: [...operations], denied: operation, at: answer.at })
    operations.push(operation)
  }
  await session.close()
  return denials
}

/** Whether an answer denies a call for a time. A cost that never fits is denied for ever, and names no wait. */
function isDenial(answer: Returned): answer is Answer {
  return typeof answer === 'object' && answer.reason !== undefined && answer.at !== Infinity
}

/**
 * Makes the calls before a denial again on a new key, and asserts that the denied call fails until the wait is over, and
 * passes then.
 */
async function expectKept(
  openStore: OpenStore,
  scenario: Scenario,
  { before, denied, at }: Denial,
): Promise<void> {
  const [session, caller] = await begin(openStore, scenario)
  for (const operation of before) await caller.perform(operation)
  const again = async (now: number) => {
    session.now = now
    const answer = await caller.consume(denied.cost, denied.tier)
    return [answer.reason === undefined, answer.at]
  }
  const shown = JSON.stringify({ before, denied, at })
  session.now = denied.now
  if (at - 1 > denied.now) assert.deepEqual(await again(at - 1), [false, at], `a tick early: ${shown}`)
  assert.deepEqual(await again(at), [true, at], `on time: ${shown}`)
  await session.close()
}

/** Opens a store and a caller of a new key under the policies of a scenario. */
async function begin(openStore: OpenStore, { shapes, numbers, start }: Scenario) {
  const session = await Session.open(openStore, start)
  const tiers = numbers[0]!.map((_, tier) => shapes.map((shape, i) => shape.factory(numbers[i]![tier]!)))
  return [session, session.caller(...tiers)] as const
}
