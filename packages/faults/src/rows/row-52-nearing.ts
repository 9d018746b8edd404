import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startPostgres } from '@sluice/harness/postgres'
import { startRedis } from '@sluice/harness/redis'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import {
  type NearingJob,
  type NearingResult,
  type Place,
  SHARES,
  WINDOW_MS,
} from '../workers/nearing-jobs.js'

/**
 * Four processes charge the same keys at once, by every kind of charge and of mixed cost, under windows of three lengths, with giving
 * back between. Each share of a limit that is crossed is reported once, by one of them.
 */
export const row: Row = {
  number: 52,
  fault: 'shares of limits that a fleet crosses',
  warnings: ['STORE_FORGETS'],
  run: cross,
}

const ENTRY = 'packages/faults/src/workers/nearing-caller.ts'
const PROCESSES = 4
const RUNS = 10
const CHARGES = 10_000
const KEYS = 100
/** Windows one after the other, where the store takes a clock. */
const ROUNDS = 3
const LIMITS = { short: 150, long: 333, year: 400 }

/** Has the fleet cross shares on each store. Passes if in no run a crossing is missing, or reported twice. */
async function cross(share: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nearing-'))
  const redis = await startRedis()
  const postgres = await startPostgres().catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'NO_POSTGRES') return undefined
    throw error
  })
  const at = (kind: Place['kind'], address: string, limiters = 1): Place => ({ kind, address, limiters })
  try {
    const outcomes = [
      await crossOn(at('memory', '', PROCESSES), share),
      await crossOn(at('machine', folder), share),
      await crossOn(at('redis', `redis://${redis.host}:${redis.port}`), share),
    ]
    if (postgres) outcomes.push(await crossOn(at('postgres', postgres.url), share))
    else outcomes.push({ pass: true, figure: 'postgres: skipped' })
    return together(outcomes)
  } finally {
    await redis.stop()
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Runs the load on one store. While a step only charges, what counts of a key only grows: it crosses the shares between what counted
 * before the step and after it, each once, whichever charges do it.
 */
async function crossOn(place: Place, share: number): Promise<Outcome> {
  const members = await Promise.all(
    Array.from({ length: PROCESSES / place.limiters }, () => startMember(ENTRY, resolve('.'))),
  )
  const counts = { right: 0, crossed: 0, charges: 0 }
  const wrong: string[] = []
  const [runs, charges] = [Math.max(1, Math.round(RUNS * share)), Math.round(CHARGES * Math.max(share, 0.2))]
  const began = Date.now()
  try {
    for (let run = 0; run < runs; run++) {
      const keys = Array.from({ length: Math.ceil((KEYS * charges) / CHARGES) }, (_, i) => `${run}-${i}`)
      const before = wrong.length
      for (let round = 0; round < ROUNDS; round++) {
        const nowMs = began + round * WINDOW_MS
        const of = (step: NearingJob['step'], calls: number): Promise<readonly NearingResult[]> =>
          all(members, (i) => ({ place, nowMs, keys, step, calls, seed: (run * 100 + round) * 10 + i }))
        const calls = Math.ceil(charges / ROUNDS / 2 / members.length)
        for (const givesBack of [false, true]) {
          if (givesBack) await of('give back', Math.ceil(calls / 5))
          const [from] = await of('read', 0)
          const results = await of('charge', calls)
          const [to] = await of('read', 0)
          counts.charges += results.reduce((sum, { charges }) => sum + charges, 0)
          const expected = crossings(keys, from!.used, to!.used)
          const crossed = results.flatMap(({ crossed }) => crossed).sort()
          counts.crossed += crossed.length
          wrong.push(...differences(crossed, expected.sort()))
        }
      }
      if (wrong.length === before) counts.right++
    }
  } finally {
    await Promise.all(members.map((member) => member.end()))
  }
  const figure = `${place.kind}: ${counts.right} of ${runs} runs right, ${counts.crossed} crossings of ${counts.charges} charges`
  return {
    pass: wrong.length === 0 && counts.crossed > 0,
    figure: wrong[0] ? `${figure} (${wrong.length} wrong: ${wrong[0]})` : figure,
  }
}

/** The shares, as `key policy share`, that lie between what counted of each key and policy before and after. */
function crossings(
  keys: readonly string[],
  from: NearingResult['used'],
  to: NearingResult['used'],
): string[] {
  return keys.flatMap((key, i) =>
    Object.entries(LIMITS).flatMap(([policy, limit], j) =>
      SHARES.filter((share) => from[i]![j]! < share * limit && to[i]![j]! >= share * limit).map(
        (share) => `${key} ${policy} ${share}`,
      ),
    ),
  )
}

/** What stands in one of two sorted lists more often than in the other. */
function differences(crossed: readonly string[], expected: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const each of crossed) counts.set(each, (counts.get(each) ?? 0) + 1)
  for (const each of expected) counts.set(each, (counts.get(each) ?? 0) - 1)
  return [...counts].filter(([, count]) => count !== 0).map(([each, count]) => `${each} by ${count}`)
}

/** Has each process do its part of a step at the same time. */
async function all(
  members: readonly Member[],
  jobOf: (i: number) => NearingJob,
): Promise<readonly NearingResult[]> {
  await Promise.all(members.map((member, i) => member.prepare(jobOf(i))))
  return Promise.all(members.map((member) => member.go() as Promise<NearingResult>))
}
