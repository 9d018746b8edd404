import type { Replacements } from '@sluice/core/internal'

const RATE = 'write limiter: createLimiter({ policies: [...] })'
const SEMAPHORE = 'write semaphore: createSemaphore({ limit })'
const REDIS = 'write store: redisStore(client) in createLimiter and createSemaphore'
const SIGNAL = 'call with signal: AbortSignal.timeout(...), to which the function listens'
const NOTHING = 'omit it: there is no such choice'

/** What to write in place of former options, and of those of bottleneck, p-queue and p-throttle (docs/migrate). */
export const REPLACEMENTS: Replacements = {
  ahead: "it is called 'prefetch'",
  repeatable: "it is called 'isRetryable'",
  minTime: 'write limiter: createLimiter({ policies: [gcra({ limit: 1, window: minTime, burst: 1 })] })',
  maxConcurrent: SEMAPHORE,
  concurrency: SEMAPHORE,
  reservoir: RATE,
  reservoirRefreshAmount: RATE,
  reservoirRefreshInterval: RATE,
  reservoirIncreaseAmount: RATE,
  reservoirIncreaseInterval: RATE,
  reservoirIncreaseMaximum: RATE,
  interval: RATE,
  intervalCap: RATE,
  limit: RATE,
  window: RATE,
  highWater: "it is called 'maxQueue'",
  strategy: 'omit it: calls beyond maxQueue are refused',
  strict: 'omit it: a sliding log is always strict',
  weight: "it is called 'cost'",
  timeout: SIGNAL,
  expiration: SIGNAL,
  datastore: REDIS,
  clientOptions: REDIS,
  rejectOnDrop: NOTHING,
  trackDoneStatus: NOTHING,
  carryoverConcurrencyCount: NOTHING,
  carryoverIntervalCount: NOTHING,
  queueClass: 'write priority, of the queue or of a call',
  autoStart: 'call queue.pause()',
  onDelay: "listen to the event 'waited'",
  signal: 'it belongs to run(fn, { signal }), or to the request',
  id: 'write name, in createLimiter and createSemaphore',
  retry: "it is called 'retries', a number",
  retries: "it is called 'retry', a function",
}
