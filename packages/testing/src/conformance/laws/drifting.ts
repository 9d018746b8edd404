import { strict as assert } from 'node:assert'
import { ruleOf } from '../rule.js'
import type { Subject } from '../law.js'
import { type OpenStore, Session } from '../session.js'
import type { Shape } from '../shapes.js'

/** Rates that are no round numbers in binary, or leave no room for rounding. */
export const RATES = [
  { limit: 3, window: 1000, capacity: 50 },
  { limit: 7, window: 1000, capacity: 2 },
  { limit: 30, window: 1000, capacity: 1000 },
  { limit: 300_000, window: 1000, capacity: 300_000 },
  { limit: 700_000, window: 1000, capacity: 1_000_000 },
  { limit: 1, window: 86_400_000, capacity: 20 },
]
type Rate = (typeof RATES)[number]

const STEPS_A_RUN = 50

/**
 * Declares the law that rounding never adds up where a debt drains continuously: a key that is used up again and again, `runs` x
 * 50 times, has let through what exact arithmetic allows, or up to one unit less. One test for each of RATES. Other algorithms
 * have no such debt, and no test.
 */
export function drifting({ shape, openStore, runs }: Subject): void {
  if (!drainsContinuously(shape)) return

  // In a loop: `it.each` is none of the globals that every runner has.
  for (const rate of RATES) {
    const title = `stays within one unit of exact arithmetic at ${rate.limit} per ${rate.window} ms`
    it(title, async () => void (await drift(shape, openStore, rate, runs * STEPS_A_RUN)))
  }
}

/** Whether an algorithm has a debt that drains continuously, in numbers that are multiplied by the window. */
export function drainsContinuously({ model, variant }: Shape): boolean {
  return model.capacity !== undefined && model.multiplied(variant)
}

/**
 * Consumes all that remains, `steps` times with pauses in between, and compares the sum each time with the most that exact
 * arithmetic allows since the start (`model.bound`). Returns by how many units the sum was `behind` at most, and the microseconds
 * `elapsed`. Pauses are shorter than the time in which the key fills up, as what overflows is lost without being an error.
 * @throws {AssertionError} if the sum is ahead, or more than one unit behind.
 */
export async function drift(
  { model, variant, factory }: Shape,
  openStore: OpenStore,
  { limit, window, capacity }: Rate,
  steps: number,
): Promise<{ readonly behind: bigint; readonly elapsed: number }> {
  const options = { ...variant, limit, window, [model.capacity!]: capacity }
  const rule = ruleOf(model, options)
  const session = await Session.open(openStore, 1)
  const caller = session.caller([factory(options)])
  let [admitted, behind] = [0n, 0n]
  for (const elapsed of gaps(steps, ((capacity - 1) * window * 1000) / limit)) {
    const { remaining } = await caller.peek(1)
    assert.equal((await caller.consume(remaining)).reason, undefined)
    admitted += BigInt(remaining)
    const late = model.bound(rule, 1n, BigInt(session.now)) - admitted
    assert(late >= 0n && late <= 1n, `${late} units behind after ${session.now} microseconds`)
    if (late > behind) behind = late
    session.now += elapsed
  }
  await session.close()
  return { behind, elapsed: session.now }
}

/**
 * Pauses in microseconds, none as long as `full`, in which a used-up key fills up but for one unit. Every fifth is a single
 * microsecond; of the others, odd ones are spread up to nine tenths of `full` and even ones up to a hundredth. A fixed random
 * sequence, so that every run is the same.
 */
function* gaps(steps: number, full: number): Generator<number> {
  let random = 12_345
  for (let i = 0; i < steps; i++) {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31
    const share = random / 2 ** 31
    yield i % 5 === 0 ? 1 : Math.ceil(share * (full / (i % 2 ? 1.1 : 100)))
  }
}
