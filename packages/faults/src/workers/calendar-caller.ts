import { calendarWindow, type CalendarWindowOptions } from '@sluice/calendar'
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { serve } from './fleet-member.js'

export interface CalendarJob {
  readonly redis: { readonly host: string; readonly port: number }
  readonly key: string
  readonly policy: CalendarWindowOptions
  /** How far the clock of this process is ahead. */
  readonly aheadMs: number
  /** How long it calls. */
  readonly forMs: number
}

/** How many calls passed in the window that was about to end, and in those that end later. */
export interface CalendarResult {
  readonly first: number
  readonly later: number
}

const HOUR_MS = 3_600_000

/** Calls a limit of the calendar as fast as it can, in a process whose clock is wrong. */
serve<CalendarJob, CalendarResult>(async ({ redis, key, policy, aheadMs, forMs }) => {
  const { now } = Date
  Date.now = () => now() + aheadMs
  const store = redisStore(redis, { denialCache: false })
  const policies = [calendarWindow(policy)]
  const limiter = createLimiter({ name: 'calendar', policies, store, onStoreError: 'throw', deadline: '30s' })
  await store.ready()
  return async () => {
    const passed = { first: 0, later: 0 }
    const began = performance.now()
    while (performance.now() - began < forMs) {
      const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)))
      for (const { allowed, resetAfterMs } of decisions)
        if (allowed) passed[resetAfterMs < HOUR_MS ? 'first' : 'later']++
    }
    await limiter.close()
    await store.close()
    return passed
  }
})
