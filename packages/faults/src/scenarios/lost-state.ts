import { deepStrictEqual } from 'node:assert'
import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import * as fc from 'fast-check'
import {
  mainShapes,
  Caller,
  operationOf,
  type OpenStore,
  type Options,
  comparable,
  Session,
  type Shape,
  starts,
  type Step,
  tiers,
  traffic,
} from '@sluice/testing/internal'
import { command } from '@sluice/harness/redis'
import { keyspaceOf, redisKey } from '../../../core/src/stores/redis/key.js'
import type { DatedCharge } from '../../../core/src/stores/store.js'
import type { Grounds } from './sequences.js'

/** The units that are charged, how they are lost, and what others charge then. */
interface LostScenario {
  readonly shape: Shape
  readonly options: Options
  readonly start: number
  readonly first: readonly Step[]
  readonly later: readonly Step[]
}

/** Loses the state of every key of a batch at once. */
type Lose = (played: readonly Played[]) => Promise<unknown>

interface Played {
  readonly scenario: LostScenario
  readonly session: Session
  readonly store: Store
  /** Was charged before and after the loss. */
  readonly caller: Caller
  /** A key that only the later calls were made for. */
  readonly twin: Caller
  lost: readonly DatedCharge[]
}

export interface Losses {
  sequences: number
  /** Charges whose state was lost, and were given back afterwards. */
  released: number
  /** The first sequence in which that changed what others had charged. */
  wrong: string | undefined
}

const NAME = 'lost'
const BATCH = 50
const MOST_COST = 1000

/** Charges, loses the state, charges for others, and gives the first charges back: the others' must stay as they are. */
export async function othersUnchanged(
  { shapes, stores, server }: Grounds,
  { sequences, seed }: { readonly sequences: number; readonly seed: number },
): Promise<Losses> {
  const losses: Losses = { sequences: 0, released: 0, wrong: undefined }
  const ways: readonly (readonly [what: string, OpenStore, Lose])[] = [
    ['reset in memory', stores.memory, reset],
    ['eviction', (clock) => memoryStore({ clock, maxKeys: 1 }), evict],
    ['reset in Redis', stores.Redis, reset],
    ['FLUSHALL', stores.Redis, () => command(server, 'FLUSHALL')],
    ['full again in memory', stores.memory, refill],
    ['full again in Redis', stores.Redis, refill],
    ['broken state', stores.Redis, (played) => Promise.all(played.map(breakState))],
  ]
  const each = Math.ceil(sequences / ways.length)
  for (const [way, [what, openStore, lose]] of ways.entries()) {
    const scenarios = fc.sample(lostScenarios(shapes), { numRuns: each, seed: seed + way })
    for (let i = 0; i < each; i += BATCH) {
      try {
        losses.released += await playBatch(scenarios.slice(i, i + BATCH), openStore, lose)
      } catch (error) {
        losses.wrong ??= `${what}: ${(error as Error).message}`
      }
    }
    losses.sequences += each
  }
  losses.wrong ??= await wrongWhereRedisTellsTheTime(server)
  return losses

  /** Puts a text in the place of the key's state in Redis, which then counts as lost. */
  async function breakState({ caller, scenario }: Played): Promise<void> {
    const { shape } = scenario.shape.factory(scenario.options)
    await command(server, 'SET', redisKey(keyspaceOf('sluice', NAME, [shape]), caller.key), 'not a state')
  }
}

/**
 * Plays scenarios at once: calls, a loss of the state, calls again and releases of what was lost. Returns how many charges
 * were released. Throws where one had an effect.
 */
async function playBatch(
  scenarios: readonly LostScenario[],
  openStore: OpenStore,
  lose: Lose,
): Promise<number> {
  const batch = await Promise.all(scenarios.map((scenario) => begin(scenario, openStore)))
  try {
    await Promise.all(batch.map(({ caller, scenario }) => live([caller], scenario.first)))
    for (const played of batch) {
      played.lost = played.caller.charges.splice(0)
      played.session.now += 1
    }
    await lose(batch)
    await Promise.all(batch.map(({ caller, twin, scenario }) => live([caller, twin], scenario.later)))
    const released = await Promise.all(batch.map(expectUnchanged))
    return released.reduce((a, b) => a + b, 0)
  } finally {
    for (const { store } of batch) await store.close()
  }
}

/** Opens a key on the store, and its twin in memory, which never had what will be lost. */
async function begin(scenario: LostScenario, openStore: OpenStore): Promise<Played> {
  let store!: Store
  let twins!: Store
  const session = await Session.open(async (clock) => {
    store = await openStore(clock)
    twins = memoryStore({ clock }) // a store of its own: it must not push the other key out
    return store
  }, scenario.start)
  const policies = [scenario.shape.factory(scenario.options)]
  const open = (of: Store) => [of.keyspace(NAME, policies, () => {})]
  const key = `${process.pid}-${++keys}`
  const [caller, twin] = [new Caller(session, open(store), key), new Caller(session, open(twins), key)]
  return { scenario, session, store, caller, twin, lost: [] }
}

let keys = 0

/** Makes the same calls for each of these callers. What the next call is depends on the answers to the first caller. */
async function live(callers: readonly Caller[], steps: readonly Step[]): Promise<void> {
  const [guide] = callers as [Caller]
  for (const step of steps) {
    await guide.peek(1)
    const operation = operationOf(step, guide.session.now, guide.tiers[0]!, guide.known, MOST_COST)
    for (const caller of callers) await caller.perform(operation)
  }
}

/**
 * Releases the charges that were lost, and checks that the key stays as its twin, which never had them. Returns how many were
 * released.
 */
async function expectUnchanged({ scenario, session, caller, twin, lost }: Played): Promise<number> {
  const { capacity } = caller.tiers[0]![0]!
  for (const charge of lost) {
    const effect = await caller.release(charge, charge.cost)
    if (effect !== 0) throw new Error(`${scenario.shape.title}: ${effect} units of others were given back`)
  }
  for (const cost of [1, Math.min(capacity, MOST_COST)]) {
    const [answer, twinAnswer] = [await caller.peek(cost), await twin.peek(cost)]
    deepStrictEqual(comparable(answer), comparable(twinAnswer), `${scenario.shape.title} is not as its twin`)
    if (answer.at !== Infinity) session.now = answer.at
  }
  return lost.length
}

/** The same of keys that are full again, on Redis's own clock, where plain calls have a way of their own through the script. */
async function wrongWhereRedisTellsTheTime({ host, port }: Grounds['server']): Promise<string | undefined> {
  const store = redisStore({ host, port })
  try {
    for (const { factory, variant } of mainShapes()) {
      const policy = factory({ limit: 10, window: 3_600_000, ...variant })
      const limiter = createLimiter({ name: policy.name, policies: [policy], store, onStoreError: 'throw' })
      const first = await limiter.consume('k', { cost: 5 })
      await limiter.refund('k', { cost: 5 })
      await limiter.consume('k', { cost: 5 })
      await first.settle(0)
      const { remaining } = await limiter.peek('k')
      if (remaining !== 5)
        return `${policy.name}, on Redis's clock: ${remaining - 5} units of others were given back`
    }
  } finally {
    await store.close()
  }
  return undefined
}

const reset: Lose = (batch) => Promise.all(batch.map(({ caller }) => caller.reset()))

/** Gives back what is charged and waits for the rest: the state is full, which is to be as if it were lost. */
const refill: Lose = (batch) =>
  Promise.all(
    batch.map(async ({ caller, session }) => {
      await caller.refund(MOST_COST)
      session.now = (await caller.peek(1)).resetAt
    }),
  )

/** A store of one key forgets it for another one, and that one for the next call. */
const evict: Lose = async (batch) => {
  for (const { store, caller } of batch) {
    const other = store.keyspace(NAME, caller.tiers[0]!, () => {})
    await other.decide('consume', 'another', 1, 0)
  }
}

/** Draws scenarios: one policy, calls before its state is lost, and calls after. */
function lostScenarios(shapes: readonly Shape[]): fc.Arbitrary<LostScenario> {
  return fc.constantFrom(...shapes).chain((shape) =>
    fc.record({
      shape: fc.constant(shape),
      options: tiers(shape, 1).map(([only]) => only!),
      start: starts,
      first: traffic({ kinds: { consume: 3, book: 1 }, most: 6 }),
      later: traffic({ kinds: { consume: 3, book: 1, charge: 1 }, most: 6 }),
    }),
  )
}
