import { drainsContinuously, mainShapes } from '@sluice/testing/internal'
import { startRedis } from '@sluice/harness/redis'
import type { Result } from '../workers/caller.js'
import { specOf } from '../every-algorithm.js'
import type { PolicySpec } from '../policy-spec.js'
import { processes, startFleet } from '../fleet.js'
import type { Outcome, Row } from '../row.js'

/** Callers who ask all the time get the burst and then the rate, neither more nor less. */
export const row: Row = { number: 2, fault: 'rate under saturation', run: saturate }

const RATE = 1000
const BURST = 100
const MEMBERS = 4
const CALLERS = 64

const LEASES = { ttl: '50ms', size: 50 } as const

/** One policy of each algorithm that is a bucket: it drains all the time, and its capacity can be set. */
const POLICIES: readonly PolicySpec[] = mainShapes()
  .filter(drainsContinuously)
  .map((shape) => specOf(shape, { limit: RATE, window: '1s', [shape.model.capacity!]: BURST }))

/**
 * Saturates one key from several processes for some seconds. Passes if each call was decided as a bucket would and the count
 * is exact to one unit; with leases, if never too many pass and half of the rate is used. `share` is the part of the full
 * load, 0 to 1.
 */
async function saturate(share: number): Promise<Outcome> {
  const seconds = Math.max(0.5, 5 * share)
  const { host, port, stop } = await startRedis()
  const fleet = await startFleet(processes(MEMBERS))
  const figures: string[] = []
  let pass = true
  for (const spec of POLICIES) {
    const [key] = spec
    const job = { redis: { host, port }, key, policies: [spec], callers: CALLERS, seconds }
    const results = await fleet.run(Array.from({ length: MEMBERS }, () => job))
    const errors = results.flatMap((result) => result.errors)
    const { calls, admitted, tookUs, off, wrong } = replay(results)
    pass &&= errors.length === 0 && wrong === 0 && Math.abs(off) <= 1
    figures.push(
      `${key} ${admitted} of ${calls} calls in ${(tookUs / 1e6).toFixed(3)} s (${off.toFixed(2)} off), ` +
        `${wrong} decided otherwise than a bucket would${errors[0] ? `, ${errors[0]}` : ''}`,
    )
  }
  for (const spec of POLICIES) {
    const job = { redis: { host, port }, key: `${spec[0]}, leases`, policies: [spec], leases: LEASES }
    const all = { ...job, callers: CALLERS, seconds: seconds / 2 }
    const results = await fleet.run(Array.from({ length: MEMBERS }, () => all))
    const errors = results.flatMap((result) => result.errors)
    const servedAt = results.flatMap((result) => result.servedAt).sort((a, b) => a - b)
    const tooMany = overRate(servedAt, RATE, BURST)
    const inSeconds = secondsOf(servedAt)
    pass &&= errors.length === 0 && tooMany === 0 && servedAt.length > (RATE * inSeconds) / 2
    figures.push(
      `${spec[0]} with leases ${servedAt.length} served in ${inSeconds.toFixed(3)} s, ${tooMany} of them too many` +
        (errors[0] ? `, ${errors[0]}` : ''),
    )
  }
  await fleet.end()
  await stop()
  return { pass, figure: `${RATE}/s, burst ${BURST}, ${MEMBERS} x ${CALLERS} callers: ${figures.join('; ')}` }
}

/** Seconds between the first and the last of these instants. Of a pause only counts what the bucket needs to be full. */
function secondsOf(servedAt: readonly number[]): number {
  const gaps = servedAt.slice(1).map((at, i) => (at - servedAt[i]!) / 1e6)
  return gaps.reduce((sum, gap) => sum + Math.min(gap, BURST / RATE), 0)
}

/** How many of these served calls, given in order, a bucket of this burst and rate a second has no room for. */
function overRate(servedAt: readonly number[], rate: number, burst: number): number {
  let [level, last, over] = [burst * UNIT, servedAt[0]!, 0]
  for (const at of servedAt) {
    level = Math.min(burst * UNIT, level + rate * (at - last))
    last = at
    if (level < UNIT) over++
    else level -= UNIT
  }
  return over
}

/**
 * Puts the same calls at the same instants to a bucket that counts millionths of a unit, and compares what was admitted
 * up to the last denial with burst and rate. What ran over while no call was made, because the machine stood still, is not
 * missing.
 */
function replay(results: readonly Result[]) {
  const answers = results.flatMap(({ admittedAt, deniedAt }) => [
    ...admittedAt.map((at) => ({ at, allowed: true })),
    ...deniedAt.map((at) => ({ at, allowed: false })),
  ])
  answers.sort((a, b) => a.at - b.at || Number(b.allowed) - Number(a.allowed))
  const first = answers[0]!.at
  let [level, last, ranOver, admitted, wrong] = [BURST * UNIT, first, 0, 0, 0]
  let measured = { admitted: 0, tookUs: 0, off: Infinity }
  for (const { at, allowed } of answers) {
    level += RATE * (at - last)
    last = at
    ranOver += Math.max(0, level - BURST * UNIT)
    level = Math.min(level, BURST * UNIT)
    if (allowed !== level >= UNIT) wrong++
    if (allowed) {
      level -= UNIT
      admitted++
    } else {
      const tookUs = at - first
      measured = { admitted, tookUs, off: admitted - BURST - (RATE * tookUs - ranOver) / UNIT }
    }
  }
  return { ...measured, calls: answers.length, wrong }
}

const UNIT = 1_000_000
