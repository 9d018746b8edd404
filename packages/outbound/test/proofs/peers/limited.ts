import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import Bottleneck from 'bottleneck'
import Redis from 'ioredis'
import PQueue from 'p-queue'
import pThrottle from 'p-throttle'
import { limitFetch } from '../../../src/index.js'
import type { Kind, PeerJob } from './job.js'

/** Calls a URL when it is its turn. */
export type Send = (url: string) => Promise<Response>

export interface Limited {
  readonly send: Send
  ready?(): Promise<unknown>
  close?(): Promise<unknown>
}

/** Each library as its documents say: those that cannot share a limit get their part of it. */
export const limitedBy: Readonly<Record<Kind, (job: PeerJob) => Limited>> = {
  sluice({ redis, limit, windowMs }) {
    const store = redisStore(redis)
    const policies = [gcra({ limit, window: windowMs, burst: 1 })]
    const limiter = createLimiter({
      name: 'provider',
      policies,
      store,
      onStoreError: 'throw',
      deadline: '2s',
    })
    const limited = limitFetch(fetch, { limiter })
    return {
      send: (url) => limited(url),
      ready: () => limiter.peek('warm'),
      close: () => limiter.close().then(() => store.close()),
    }
  },

  bottleneck: (job) => bottleneck(job, { minTime: job.windowMs / job.limit }),

  'bottleneck reservoir': (job) =>
    bottleneck(job, {
      reservoir: job.limit,
      reservoirRefreshAmount: job.limit,
      reservoirRefreshInterval: job.windowMs,
    }),

  'p-queue'({ limit, windowMs, workers }) {
    const options = { intervalCap: Math.floor(limit / workers), interval: windowMs, strict: true }
    const queue = new PQueue(options)
    return { send: (url) => queue.add(() => fetch(url)) }
  },

  'p-throttle'({ limit, windowMs, workers }) {
    const throttle = pThrottle({ limit: Math.floor(limit / workers), interval: windowMs, strict: true })
    return { send: throttle((url: string) => fetch(url)) }
  },
}

function bottleneck({ redis }: PeerJob, options: Bottleneck.ConstructorOptions): Limited {
  const limiter = new Bottleneck({
    id: 'provider',
    datastore: 'ioredis',
    clearDatastore: false,
    clientOptions: redis,
    Redis,
    ...options,
  })
  limiter.on('error', console.error)
  return {
    send: (url) => limiter.schedule({ expiration: 10_000 }, () => fetch(url)),
    ready: () => limiter.ready(),
    close: () => limiter.disconnect(),
  }
}
