import { resolve } from 'node:path'
import { calendarWindow } from '@sluice/calendar'
import { createLimiter, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { pause, startRedis } from '@sluice/harness/redis'
import { type Member, startMember } from '../fleet.js'
import { startMovedRedis } from '../moved-clock.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { CalendarJob, CalendarResult } from '../workers/calendar-caller.js'

/**
 * Processes with wrong clocks, or with other zone data, call a limit of the calendar around the end of a window; the clock of Redis is set
 * a day ahead and back; and a window ends while Redis does not answer.
 */
export const row: Row = {
  number: 48,
  fault: "a window's end in the calendar",
  perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: async (share) => together([await aroundEnds(share), await aDayAhead(), await endInOutage()]),
}

const EVERY = ['day', 'week', 'month', 'quarter', 'year'] as const
const DAY_MS = 86_400_000
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
    for (const every of share < 1 ? (['month'] as const) : EVERY) {
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

/**
 * Sets the clock of Redis a day ahead and back under each period. Passes if that admits a limit in each window that begins, and none when
 * the clock is right again, until the newest window ends.
 */
async function aDayAhead(): Promise<Outcome> {
  const redis = await startMovedRedis()
  if (typeof redis === 'string') return { pass: true, figure: `skipped: ${redis}` }
  const { server, setOffset, stop } = redis
  const store = redisStore({ host: server.host, port: server.port }, { denialCache: false })
  const wrong: string[] = []
  for (const every of EVERY) {
    setOffset(0)
    // A window that ended an hour ago, so that of periods longer than a day none ends within the next.
    const anchor = new Date(Date.now() - 3_600_000).toISOString().slice(0, 19)
    const policies = [calendarWindow({ limit: 10, every, anchor })]
    const limiter = createLimiter({ name: every, policies, store, onStoreError: 'throw', deadline: '30s' })
    const counts = [await admitted(limiter, 6)]
    for (const offset of [DAY_MS, 0]) {
      setOffset(offset)
      counts.push(await admitted(limiter, 15))
    }
    const { retryAfterMs } = await limiter.peek('k')
    setOffset(retryAfterMs - 2000)
    counts.push(await admitted(limiter, 15))
    setOffset(retryAfterMs + 2000)
    counts.push(await admitted(limiter, 15))
    // Three years later this process brings boundaries that are of no use to Redis.
    setOffset(1100 * DAY_MS)
    counts.push(await admitted(limiter, 15))
    const { resetAfterMs } = await limiter.peek('k')
    const later = Date.now() + 1100 * DAY_MS
    const end = policies[0]!.calendar!.around(later * 1000)[2]! / 1000
    counts.push(Math.round((later + resetAfterMs - end) / 60_000))
    const expected = [6, every === 'day' ? 10 : 4, 0, 0, 10, 10, 0]
    if (String(counts) !== String(expected)) wrong.push(`${every}: ${String(counts)}`)
  }
  await store.close()
  await stop()
  return {
    pass: wrong.length === 0,
    figure: `a day ahead and back: ${wrong.join('; ') || 'the limit in each window'}`,
  }
}

/**
 * Has Redis stand still over the end of a window, under `onStoreError: 'deny'`. Passes if no call passes meanwhile, and in the window that
 * has begun no more than the limit: what was sent and not answered may be counted in it.
 */
async function endInOutage(): Promise<Outcome> {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port }, { denialCache: false })
  const end = Math.ceil(Date.now() / 1000) * 1000 + 1000
  const policies = [
    calendarWindow({ limit: 50, every: 'month', anchor: new Date(end).toISOString().slice(0, 19) }),
  ]
  const limiter = createLimiter({ name: 'outage', policies, store, onStoreError: 'deny' })
  try {
    await store.ready()
    const before = await admitted(limiter, 60)
    server.pause()
    let [meanwhile, unanswered] = [0, 0]
    while (Date.now() < end + 300) {
      const { allowed, degraded } = await limiter.consume('k')
      if (allowed) meanwhile++
      if (degraded === 'timeout') unanswered++
      await pause(20)
    }
    server.resume()
    while ((await limiter.peek('k')).degraded) await pause(20)
    const after = await admitted(limiter, 60)
    return {
      pass: before === 50 && meanwhile === 0 && after <= 50 && after >= 50 - unanswered,
      figure: `an end in an outage: ${before}, ${meanwhile} and ${after} of 50 admitted, ${unanswered} unanswered`,
    }
  } finally {
    await limiter.close()
    await store.close()
    await server.stop()
  }
}

/** How many of some calls pass. */
async function admitted(limiter: Limiter, calls: number): Promise<number> {
  let passed = 0
  for (let i = 0; i < calls; i++) if ((await limiter.consume('k')).allowed) passed++
  return passed
}

/** Has each process do its job at the same time, and adds what passed. */
async function run(members: readonly Member[], jobOf: (i: number) => CalendarJob): Promise<CalendarResult> {
  await Promise.all(members.map((member, i) => member.prepare(jobOf(i))))
  const results = (await Promise.all(members.map((member) => member.go()))) as readonly CalendarResult[]
  const sum = (which: keyof CalendarResult) => results.reduce((all, each) => all + each[which], 0)
  return { first: sum('first'), later: sum('later') }
}
