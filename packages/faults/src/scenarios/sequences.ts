import { memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import * as fc from 'fast-check'
import { Redis } from 'ioredis'
import { findShapes, type OpenStore, type Scenario, scenarios, type Shape } from '@sluice/testing/internal'
import { type Address, startRedis } from '@sluice/harness/redis'

/** The subjects of the conformance kit: every shape there is, and each store on a clock that a sequence sets. */
export interface Grounds {
  readonly shapes: readonly Shape[]
  readonly stores: Readonly<Record<'memory' | 'Redis', OpenStore>>
  /** The server behind the one of them. */
  readonly server: Address
  end(): Promise<void>
}

/** Opens what random sequences are played on: every variant of every algorithm, a memory store and one on Redis. */
export async function openGrounds(): Promise<Grounds> {
  const { shapes, unjudged } = findShapes()
  if (unjudged[0]) throw new Error(`${unjudged[0]} has no model to be judged by`)
  const server = await startRedis()
  const client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 })
  return {
    shapes,
    stores: {
      memory: (clock) => memoryStore({ clock }),
      Redis: (clock) => redisStore(client, { clock }),
    },
    server,
    async end() {
      client.disconnect()
      await server.stop()
    },
  }
}

/** Sequences that are played at the same time, so that Redis is not waited for. */
const LANES = 8

/** Draws one, two or three algorithms, to be policies of one list, in any order. */
export function listsOf(shapes: readonly Shape[]): fc.Arbitrary<readonly Shape[]> {
  const any = fc.constantFrom(...shapes)
  return fc.oneof(
    { weight: 5, arbitrary: fc.tuple(any) },
    { weight: 3, arbitrary: fc.tuple(any, any) },
    { weight: 2, arbitrary: fc.tuple(any, any, any) },
  )
}

export interface Amount {
  readonly sequences: number
  readonly seed: number
}

/** How many sequences were played, and what went wrong first. */
export interface Played {
  readonly played: number
  readonly wrong: string | undefined
}

/** Plays random sequences of calls, time steps and limit changes, under one, two or three policies. */
export function play(
  shapes: readonly Shape[],
  amount: Amount,
  scenario: (scenario: Scenario) => Promise<void>,
): Promise<Played> {
  return playAll(fc.asyncProperty(scenarios(listsOf(shapes), true), scenario), amount)
}

/**
 * Tries a property on so many random sequences, the same ones for the same seed. Returns how many were played, and what was
 * wrong with the first that fails.
 */
export async function playAll<T>(
  property: fc.IAsyncProperty<T>,
  { sequences, seed }: Amount,
): Promise<Played> {
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    fc.check(property, { numRuns: Math.ceil(sequences / LANES), seed: seed + lane, endOnFailure: true }),
  )
  const results = await Promise.all(lanes)
  const broken = results.find(({ failed }) => failed)
  return {
    played: results.reduce((sum, { numRuns }) => sum + numRuns, 0),
    wrong: broken && `seed ${broken.seed}: ${String((broken.errorInstance as Error | null)?.message)}`,
  }
}
