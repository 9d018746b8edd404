import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import Bottleneck from 'bottleneck'
import PQueue from 'p-queue'
import { adaptive, createQueue, limitFetch } from '../../../src/index.js'
import { Aimd } from '../../adaptive/aimd.js'
import type { AdaptiveJob, Kind } from './job.js'

export type Send = (url: string) => Promise<Response>

/** What each process is told, where it is told a number at all: far more than its part. */
const GENEROUS = { perSecond: 250, atOnce: 30 }
const RATE = { min: 1, initial: 5, max: GENEROUS.perSecond }
const AT_ONCE = { min: 1, initial: 4, max: GENEROUS.atOnce }

/** Each way, as its documents say. The peers do not search, so they are told a generous number and obey refusals. */
export const limitedBy: Readonly<Record<Kind, (job: AdaptiveJob) => Send>> = {
  known({ unknown, limit, redis }) {
    const store = redisStore(redis)
    const shared = { name: 'provider', store, deadline: '2s' } as const
    if (unknown === 'calls at once') {
      // With one turn at a time each permit would wait for a round trip.
      return limitFetch(fetch, { semaphore: createSemaphore({ ...shared, limit }), prefetch: 10 })
    }
    const policies = [gcra({ limit: Math.floor(0.98 * limit), window: '1s', burst: 1 })]
    return limitFetch(fetch, { limiter: createLimiter({ ...shared, policies, onStoreError: 'throw' }) })
  },

  adaptive({ unknown }) {
    if (unknown === 'rate') return limitFetch(fetch, { adaptive: RATE })
    return limitFetch(fetch, { semaphore: createSemaphore({ limit: adaptive(AT_ONCE) }) })
  },

  AIMD({ unknown }) {
    if (unknown === 'rate') throw new Error('plain AIMD is measured for calls at once alone')
    const control = new Aimd(AT_ONCE, () => performance.now())
    const semaphore = createSemaphore({ limit: AT_ONCE.initial })
    const queue = createQueue({ semaphore, retry: (_, attempt) => attempt < 10 && 0 })
    const ended = (refused: boolean) => (event: { readonly runMs: number }) => {
      control.ended(event.runMs, refused)
      semaphore.resize(Math.floor(control.limit))
    }
    queue.on('done', ended(false))
    queue.on('retried', ended(true))
    return (url) => queue.run(() => accepted(url))
  },

  'replies alone'({ unknown }) {
    const { perSecond, atOnce } = GENEROUS
    const limiter = createLimiter({ policies: [gcra({ limit: perSecond, window: '1s', burst: 10 })] })
    return limitFetch(
      fetch,
      unknown === 'rate' ? { limiter } : { semaphore: createSemaphore({ limit: atOnce }) },
    )
  },

  bottleneck({ unknown }) {
    const { perSecond, atOnce } = GENEROUS
    const limiter = new Bottleneck(
      unknown === 'rate' ? { minTime: 1000 / perSecond } : { maxConcurrent: atOnce },
    )
    limiter.on('failed', (error, { retryCount }) =>
      retryCount < 2 ? ((error as Refusal).waitMs ?? 1000) : undefined,
    )
    return (url) => limiter.schedule(() => accepted(url))
  },

  'p-queue'({ unknown }) {
    const { perSecond, atOnce } = GENEROUS
    const queue = new PQueue(
      unknown === 'rate' ? { intervalCap: perSecond, interval: 1000, strict: true } : { concurrency: atOnce },
    )
    const attempt = async (url: string, left: number): Promise<Response> => {
      try {
        return await queue.add(() => accepted(url))
      } catch (error) {
        if (left === 0) throw error
        await sleep((error as Refusal).waitMs ?? 1000)
        return attempt(url, left - 1)
      }
    }
    return (url) => attempt(url, 2)
  },
}

class Refusal extends Error {
  constructor(readonly waitMs: number | undefined) {
    super('refused')
  }
}

async function accepted(url: string): Promise<Response> {
  const response = await fetch(url)
  if (response.ok) return response
  await response.text()
  const seconds = response.headers.get('retry-after')
  throw new Refusal(seconds === null ? undefined : 1000 * Number(seconds))
}
