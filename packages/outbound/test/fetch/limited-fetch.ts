import { createLimiter, gcra, memoryStore, type Policy } from '@sluice/core'
import { limitFetch, type OutboundEvent, type OutboundOptions } from '../../src/index.js'
export { outcome } from '@sluice/harness/figures'

/*
 * A limited fetch on Jest's timers and clock, whose provider is a function: nothing sleeps.
 */
export const URL_ = 'https://api.example/pay'
export const limiterOf = (...policies: Policy[]) =>
  createLimiter({ name: 'test', policies, store: memoryStore() })
export const evenly = () => limiterOf(gcra({ limit: 10, window: '1s', burst: 1 }))
export const generous = () => limiterOf(gcra({ limit: 1000, window: '1s' }))

const ABOUT_LIMITS = new Set(['waited', 'denied', 'held', 'resumed', 'adapted'])

interface Sent {
  readonly at: number
  readonly url: string
  readonly body: unknown
}

interface Unlimited {
  /** Undefined: none. */
  readonly limiter?: OutboundOptions['limiter'] | undefined
}

/** A limited fetch, its requests with their instants, and its events about limits. `answer` gets the number of the request. */
export function open(
  options: Omit<OutboundOptions, 'limiter'> & Unlimited = {},
  answer: (n: number) => Response | Promise<Response> = () => new Response('ok'),
) {
  const sent: Sent[] = []
  const events: OutboundEvent[] = []
  const start = performance.now()
  const other = async (input: unknown, init?: RequestInit) => {
    sent.push({ at: Math.round(performance.now() - start), url: String(input), body: init?.body })
    return answer(sent.length)
  }
  const onEvent = (event: OutboundEvent) => ABOUT_LIMITS.has(event.type) && events.push(event)
  const fetch = limitFetch(other, { limiter: generous(), onEvent, ...options } as OutboundOptions)
  return { fetch, sent, events, at: () => sent.map(({ at }) => at) }
}

export const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
export const refusal = (headers: Record<string, string> = {}, status = 429) =>
  new Response('no', { status, headers })

export function useFakeTime(): void {
  beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
  afterEach(() => {
    jest.restoreAllMocks()
    jest.useRealTimers()
  })
}
