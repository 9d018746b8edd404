import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { bytesInUse } from '@sluice/harness/figures'
import { ranMs } from '@sluice/harness/figures'
import { million, type Outcome, type Row } from '../row.js'

/** Many keys that end together are freed in slices that the event loop does not notice. */
export const row: Row = { number: 20, fault: 'mass expiry', timed: true, run: expire }

const LONGEST_MS = 5

/**
 * Lets many keys expire at one instant. Passes if no turn of the event loop takes longer than LONGEST_MS, apart from V8's garbage
 * collection. `share` is the part of the full load, 0 to 1.
 */
async function expire(share: number): Promise<Outcome> {
  const keys = 1_000_000 * share
  let nowUs = Date.UTC(2026, 0, 1) * 1000
  const store = memoryStore({ clock: () => nowUs })
  const limiter = createLimiter({ name: 'expiry', store, policies: [gcra({ limit: 10, window: '1m' })] })
  for (let i = 0; i < keys; i++) void limiter.decide(`user:${i}`)
  bytesInUse() // collects what the insertion left behind, and lets the collector's other threads finish
  await new Promise((resolve) => setTimeout(resolve, 500))
  nowUs += 60_000_000
  const collections = watchCollections()
  const turns = await turnsUntil(() => store.size === 0)
  const pauses = await collections()
  await limiter.close()
  const longest = Math.max(...turns.map((turn) => turn.busyMs - pauseWithin(turn, pauses)))
  const pause = Math.max(0, ...pauses.map(({ duration }) => duration))
  return {
    pass: longest <= LONGEST_MS,
    figure:
      `${million(keys)} keys ended together: a turn of the event loop took ${longest.toFixed(1)} ms at most ` +
      `(bar ${LONGEST_MS}), beside V8's own collections of up to ${pause.toFixed(1)} ms`,
  }
}

interface Turn {
  readonly start: number
  readonly end: number
  readonly busyMs: number
}

/** The turns of the event loop that this thread ran in for longer than a millisecond. */
async function turnsUntil(done: () => boolean): Promise<Turn[]> {
  const turns: Turn[] = []
  while (!done()) {
    const start = performance.now()
    const ran = ranMs()
    await new Promise((resolve) => setImmediate(resolve))
    const end = performance.now()
    const busyMs = Math.min(end - start, ranMs() - ran)
    if (busyMs > 1) turns.push({ start, end, busyMs })
  }
  return turns
}

/** Pauses of the garbage collector from here until the returned function is called. */
function watchCollections(): () => Promise<PerformanceEntry[]> {
  const pauses: PerformanceEntry[] = []
  const observer = new PerformanceObserver((list) => pauses.push(...list.getEntries()))
  observer.observe({ entryTypes: ['gc'] })
  return async () => {
    await new Promise((resolve) => setImmediate(resolve))
    observer.disconnect()
    return pauses
  }
}

/** The milliseconds of a turn of the event loop in which V8 collected garbage. */
function pauseWithin(turn: Turn, pauses: readonly PerformanceEntry[]): number {
  return pauses
    .filter(({ startTime }) => startTime >= turn.start && startTime <= turn.end)
    .reduce((sum, { duration }) => sum + duration, 0)
}
