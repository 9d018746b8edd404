import { createLimiter, gcra, type Store } from '@sluice/core'
import { pause } from '@sluice/harness/redis'
import { Load } from './load.js'
import type { Outcome, Watch } from './row.js'

/** A failure of the server of a store, and its end. */
export interface Outage {
  readonly title: string
  begin(): unknown
  /** Resolves when it could decide again. */
  end(): unknown
  readonly lastsMs: number
}

export const DEADLINE_MS = 50
const GRACE_MS = 50
const RECOVERY_MS = 500
const PER_SECOND = 500

/** The longest that a decision which asks no store may take, on a machine that others use too. */
const OPEN_MS = 5

/** How long a circuit takes to open at most: a deadline until the first call has failed, and two more. */
const OPENING_MS = 4 * DEADLINE_MS

/**
 * A limiter under load through an outage, and for a second before and after: every call is answered in time by
 * somebody, none in error, and by the store again soon after.
 */
export async function sitOut(
  store: Store,
  { title, begin, end, lastsMs }: Outage,
  watch?: Watch,
): Promise<Outcome> {
  const limiter = createLimiter({
    name: 'outage',
    store,
    policies: [gcra({ limit: 1000, window: '1s' })],
    deadline: DEADLINE_MS,
  })
  const reports = { degraded: 0, recovered: 0 }
  limiter.on('degraded', () => reports.degraded++)
  limiter.on('recovered', () => reports.recovered++)

  watch?.(limiter)

  const load = new Load(limiter, PER_SECOND)
  await pause(1000)
  let [began, ended] = [NaN, NaN]
  try {
    Object.assign(reports, { degraded: 0, recovered: 0 })
    began = performance.now()
    await begin()
    await pause(lastsMs)
    await end()
    ended = performance.now()
    await pause(1000 + RECOVERY_MS)
  } finally {
    await load.stop()
    await limiter.close()
  }

  const p99 = load.p99(began, ended)
  const open = load.p99(began + OPENING_MS, ended - GRACE_MS)
  const recovery = load.degradedAfter(ended)
  const reasons = [...load.reasons(began + OPENING_MS, ended - GRACE_MS)].join(', ')
  const pass =
    p99 <= DEADLINE_MS + GRACE_MS &&
    open <= OPEN_MS &&
    recovery <= RECOVERY_MS &&
    reports.degraded <= 1 && // none where the outage began before
    reports.recovered === 1 &&
    load.errors.length === 0
  return {
    pass,
    figure:
      `${title}: ${load.calls.length} calls, p99 ${p99.toFixed(0)} ms (bar ${DEADLINE_MS + GRACE_MS}), ` +
      `${open.toFixed(1)} ms once the circuit was open (bar ${OPEN_MS}; ${reasons}), decided by the store ` +
      `${recovery.toFixed(0)} ms after (bar ${RECOVERY_MS}), reported ${reports.degraded} + ${reports.recovered} times` +
      `${load.errors[0] ? `; ${load.errors.length} errors: ${load.errors[0]}` : ''}`,
  }
}

/** Makes one outcome of several: passed when all are, with their figures one after the other. */
export function together(outcomes: readonly Outcome[]): Outcome {
  return {
    pass: outcomes.every(({ pass }) => pass),
    figure: outcomes.map(({ figure }) => figure).join('; '),
  }
}
