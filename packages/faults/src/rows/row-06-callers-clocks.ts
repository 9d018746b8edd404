import { startRedis } from '@sluice/harness/redis'
import { everyAlgorithm } from '../every-algorithm.js'
import { startFleet } from '../fleet.js'
import { CALLERS, LIMIT, race } from '../race.js'
import type { Outcome, Row } from '../row.js'

/** Redis's clock decides, so callers whose own clocks are wrong get what the others get. */
export const row: Row = { number: 6, fault: "callers' clocks", run: skew }

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const CLOCKS = [0, HOUR_MS, -HOUR_MS, DAY_MS, -DAY_MS, 'frozen']

/** Denials of one race name the same wait, but for the time that the race takes. */
const SPREAD_MS = 60_000

/**
 * Lets processes whose clocks are an hour or a day wrong, or stand still, race for one key. Passes if the limit is exact and
 * all are given the same waits: only the clock of Redis counts. `share` is the part of the full load, 0 to 1.
 */
async function skew(share: number): Promise<Outcome> {
  const runs = Math.max(1, Math.round(4 * share))
  const { host, port, stop } = await startRedis()
  const fleet = await startFleet({ environments: CLOCKS.map((clock) => ({ CALLER_CLOCK: String(clock) })) })
  const wrong: string[] = []
  let total = 0
  for (const [title, spec] of everyAlgorithm(LIMIT)) {
    for (let run = 0; run < runs; run++, total++) {
      const key = `${title}, run ${run}`
      const job = { redis: { host, port }, key, policies: [spec], connections: 1 }
      const { results, fault } = await race(fleet, job)
      const waits = results.flatMap(({ waitsMs }) => waitsMs)
      if (fault) wrong.push(`${key}: ${fault}`)
      else if (Math.max(...waits) - Math.min(...waits) > SPREAD_MS) wrong.push(`${key}: waits differ`)
      else if (!results.every(({ wallMs }, i) => isOff(wallMs, CLOCKS[i]!)))
        wrong.push(`${key}: clocks are right`)
    }
  }
  await fleet.end()
  await stop()
  return {
    pass: wrong.length === 0,
    figure:
      `${CLOCKS.length} processes x ${CALLERS} callers, clocks right, +-1 h, +-1 d and frozen: exactly ${LIMIT} ` +
      `admitted and equal waits in ${total - wrong.length} of ${total} runs${wrong[0] ? `; ${wrong[0]}` : ''}`,
  }
}

/** Whether the fault was there: what a process took for the time when it began and ended. */
function isOff([began, done]: readonly number[], clock: number | string): boolean {
  if (clock === 'frozen') return began === done
  return Math.abs(done! - Date.now() - Number(clock)) < SPREAD_MS
}
