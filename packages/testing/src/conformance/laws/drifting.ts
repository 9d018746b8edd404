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

/** The law of debts that drain continuously: rounding must never add up. */
export function drifting({ shape, openStore, runs }: Subject): void {
  if (!drainsContinuously(shape)) return

  it.each(RATES)(
    'stays within one unit of exact arithmetic at $limit per $window ms',
    async (rate) => void (await drift(shape, openStore, rate, runs * STEPS_A_RUN)),
  )
}

/** Whether an algorithm has a debt that drains continuously, in numbers that are multiplied by the window. */
export function drainsContinuously({ model, variant }: Shape): boolean {
  return model.capacity !== undefined && model.multiplied(variant)
}

/**
 * Consumes all that remains, `steps` times with time in between. Returns by how many units the sum fell behind exact
 * arithmetic at most, and the microseconds that have passed. Throws where it is ahead, or more than one unit behind.
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

/** Steps of time in which nothing overflows: single microseconds, odd ones, and nearly the time to fill up. */
function* gaps(steps: number, full: number): Generator<number> {
  let random = 12_345
  for (let i = 0; i < steps; i++) {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31
    const share = random / 2 ** 31
    yield i % 5 === 0 ? 1 : Math.ceil(share * (full / (i % 2 ? 1.1 : 100)))
  }
}
