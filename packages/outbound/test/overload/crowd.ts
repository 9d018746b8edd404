import { type Limiter, createLimiter, gcra, memoryStore } from '@sluice/core'
import { randomFrom } from '@sluice/harness/figures'
import { limitFetch, type OutboundOptions, RateLimitExceededError } from '../../src/index.js'

/*
 * Callers of one provider on Jest's clock. Each makes one call after the other, and after a failure it waits for a moment.
 */

export interface Sent {
  readonly at: number
  readonly isRefused: boolean
}

export interface Crowd {
  readonly sent: readonly Sent[]
  /** Calls by what their callers got: 200, 503, or the reason of a denial. */
  readonly ended: ReadonlyMap<number | string, number>
  /** Calls that are under way. */
  underWay(): number
}

/** What the provider answers to a request that arrives so many milliseconds after the start. */
export type Answers = (atMs: number) => Response | undefined

export const LATENCY_MS = 40
/** After a failure. */
const MOMENT_MS = 1000

/** `answers` returns undefined for a request that gets no answer at all. */
export function gather(
  callers: number,
  answers: Answers,
  options: Partial<OutboundOptions> = {},
  limiter: Limiter = generous(),
): Crowd {
  const start = performance.now()
  const sent: Sent[] = []
  const ended = new Map<number | string, number>()
  let underWay = 0
  const provider = async () => {
    const at = performance.now() - start
    const answer = answers(at)
    sent.push({ at, isRefused: answer?.status !== 200 })
    underWay++
    await sleep(LATENCY_MS)
    if (!answer) await new Promise(() => {})
    underWay--
    return answer!
  }
  const limited = limitFetch(provider, { limiter, ...options })
  const call = async () => {
    for (;;) {
      const result = await limited('https://api.example/').then(
        ({ status }) => status,
        (error: RateLimitExceededError) => error.reason,
      )
      ended.set(result, (ended.get(result) ?? 0) + 1)
      if (result !== 200) await sleep(MOMENT_MS)
    }
  }
  for (let caller = 0; caller < callers; caller++) void call()
  return { sent, ended, underWay: () => underWay }
}

export const generous = () =>
  createLimiter({ name: 'test', policies: [gcra({ limit: 1000, window: '1s' })], store: memoryStore() })

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const immediately = setImmediate

/** Lets time pass, as `jest.advanceTimersByTimeAsync` does, which waits for a real millisecond at each timer. */
export async function pass(ms: number): Promise<void> {
  let isOver = false
  setTimeout(() => (isOver = true), ms)
  while (!isOver) {
    await new Promise((resolve) => immediately(resolve))
    jest.advanceTimersToNextTimer()
  }
}

/** Jest's clock, and the same random numbers in each run. */
export function useFakeTime(): void {
  beforeEach(() => {
    jest.useFakeTimers({ now: Date.UTC(2026, 0, 1), doNotFake: ['nextTick', 'queueMicrotask'] })
    jest.spyOn(Math, 'random').mockImplementation(randomFrom(7))
  })
  afterEach(() => {
    jest.restoreAllMocks()
    jest.useRealTimers()
  })
}
