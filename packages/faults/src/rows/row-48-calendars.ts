import { resolve } from 'node:path'
import { startRedis } from '@sluice/harness/redis'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { CalendarJob, CalendarResult } from '../workers/calendar-caller.js'

/** Processes with wrong clocks, or with other zone data, call a limit of the calendar around the end of a window. */
export const row: Row = { number: 48, fault: "a window's end in the calendar", run: aroundEnds }

const LIMIT = 500
const AHEAD_MS = [5000, -5000, 5000, -5000]
const LEAD_MS = 2500
/** Other zone data: to these processes windows end up to an hour apart. */
const MINUTES_LATER = [0, 20, 40, 60]

/**
 * Lets four processes call across the end of a window of each kind. Passes if exactly the limit is admitted in each window, whichever
 * process comes first, and the limit once where the processes disagree on where windows end. `share` is the part of the full load.
 */
async function aroundEnds(share: number): Promise<Outcome> {
  const server = await startRedis()
  const program = 'packages/faults/src/workers/calendar-caller.ts'
  const members = await Promise.all(AHEAD_MS.map(() => startMember(program, resolve('.'))))
  try {
    const outcomes: Outcome[] = []
    for (const every of share < 1
      ? (['month'] as const)
      : (['day', 'week', 'month', 'quarter', 'year'] as const)) {
      const job = (anchor: Date, aheadMs: number): CalendarJob => ({
        redis: { host: server.host, port: server.port },
        key: every,
        policy: { limit: LIMIT, every, anchor: anchor.toISOString().slice(0, 19) },
        aheadMs,
        forMs: 2 * LEAD_MS,
      })
      const hence = (minutes: number): Date => new Date(Date.now() + 5_400_000 + 60_000 * minutes)
      // Started and connected before the time counts.
      await run(members, (i) => ({ ...job(hence(0), AHEAD_MS[i]!), key: `${every} warm`, forMs: 100 }))
      const end = new Date(Math.ceil((Date.now() + LEAD_MS) / 1000) * 1000)
      const ends = await run(members, (i) => job(end, AHEAD_MS[i]!))
      outcomes.push({
        pass: ends.first === LIMIT && ends.later === LIMIT,
        figure: `${every}, clocks 5 s off: ${ends.first} and ${ends.later} of ${LIMIT} admitted`,
      })
      const others = await run(members, (i) => ({
        ...job(hence(MINUTES_LATER[i]!), 0),
        key: `${every} others`,
      }))
      const admitted = others.first + others.later
      outcomes.push({
        pass: admitted === LIMIT,
        figure: `${every}, other zone data: ${admitted} of ${LIMIT}`,
      })
    }
    return together(outcomes)
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await server.stop()
  }
}

/** Has each process do its job at the same time, and adds what passed. */
async function run(members: readonly Member[], jobOf: (i: number) => CalendarJob): Promise<CalendarResult> {
  await Promise.all(members.map((member, i) => member.prepare(jobOf(i))))
  const results = (await Promise.all(members.map((member) => member.go()))) as readonly CalendarResult[]
  const sum = (which: keyof CalendarResult) => results.reduce((all, each) => all + each[which], 0)
  return { first: sum('first'), later: sum('later') }
}
