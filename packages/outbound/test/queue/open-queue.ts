import { createLimiter, gcra, memoryStore, type Policy } from '@sluice/core'
import { createQueue, type QueueEvent, type QueueOptions, type RunOptions } from '../../src/index.js'
import { outcome } from '@sluice/harness/figures'

export { outcome }

/*
 * A queue on Jest's timers and clock: nothing sleeps.
 */
export const limiterOf = (...policies: Policy[]) =>
  createLimiter({ name: 'test', policies, store: memoryStore() })
export const evenly = (limit = 10) => gcra({ limit, window: '1s', burst: 1 })

/** A queue, the calls that were started with their instants, and its events. Each call takes `tookMs`. */
export function open(options: Partial<QueueOptions> = {}, tookMs = 0) {
  const began: { readonly at: number; readonly name: string }[] = []
  const events: QueueEvent[] = []
  const start = performance.now()
  const limiter = 'semaphore' in options ? undefined : limiterOf(evenly())
  const queue = createQueue({
    ...(limiter && { limiter }),
    onEvent: (event) => events.push(event),
    ...options,
  })
  const add = (name: string, runOptions: RunOptions = {}) =>
    outcome(
      queue.run(async () => {
        began.push({ at: Math.round(performance.now() - start), name })
        if (tookMs > 0) await sleep(tookMs)
        return name
      }, runOptions),
    )
  return {
    queue,
    add,
    events,
    at: () => began.map(({ at }) => at),
    names: () => began.map(({ name }) => name).join(''),
    types: () => events.map(({ type }) => type),
  }
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
export const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

export function useFakeTime(): void {
  beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
  afterEach(() => jest.useRealTimers())
}
