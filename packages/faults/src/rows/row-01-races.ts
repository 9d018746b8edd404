import { startRedis } from '@sluice/harness/redis'
import { everyAlgorithm, isCalendar } from '../every-algorithm.js'
import { processes, startFleet } from '../fleet.js'
import { CALLERS, leasedRace, LIMIT, race } from '../race.js'
import type { Outcome, Row } from '../row.js'

/** A fleet that calls for one key at once is admitted exactly as often as the limit says. */
export const row: Row = { number: 1, fault: 'races, one hot key', run: races }

/** Connections of a process: all callers on one, or a few callers on each. */
const CONNECTIONS = [1, 8]

/**
 * Lets processes race for one hot key under each algorithm, with and without leases. Passes if no race has a fault, for
 * example more admitted than the limit. `share` is the part of the full load, 0 to 1.
 */
async function races(share: number): Promise<Outcome> {
  const members = Math.max(2, Math.round(8 * share))
  const runs = Math.max(1, Math.round(10 * share))
  const { host, port, stop } = await startRedis()
  const fleet = await startFleet(processes(members))
  const algorithms = everyAlgorithm(LIMIT)
  const [wrong, wrongWithLeases]: [string[], string[]] = [[], []]
  for (const [title, spec] of algorithms) {
    for (const connections of CONNECTIONS) {
      for (let run = 0; run < runs; run++) {
        const key = `${title}, ${connections} connections, run ${run}`
        const { fault } = await race(fleet, { redis: { host, port }, key, policies: [spec], connections })
        if (fault) wrong.push(`${key}: ${fault}`)
      }
    }
    for (let run = 0; run < runs && !isCalendar(spec); run++) {
      const key = `${title}, leases, run ${run}`
      const fault = await leasedRace(fleet, { redis: { host, port }, key, policies: [spec] })
      if (fault) wrongWithLeases.push(`${key}: ${fault}`)
    }
  }
  await fleet.end()
  await stop()
  const total = CONNECTIONS.length * algorithms.length * runs
  const leased = algorithms.filter(([, spec]) => !isCalendar(spec)).length * runs
  const [first] = [...wrong, ...wrongWithLeases]
  return {
    pass: first === undefined,
    figure:
      `${members} processes x ${CALLERS} callers, ${algorithms.length} algorithms, ${CONNECTIONS.join(' and ')} ` +
      `connections a process: exactly ${LIMIT} admitted in ${total - wrong.length} of ${total} runs; with leases ` +
      `exactly what they leave in ${leased - wrongWithLeases.length} of ${leased}${first ? `; ${first}` : ''}`,
  }
}
