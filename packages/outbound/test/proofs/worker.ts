import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, createSemaphore, gcra, type Keyspace, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { decisionOf, limitFetch, RateLimitExceededError } from '../../src/index.js'
import type { Job, Report } from './job.js'

/*
 * A worker of the fleet: makes calls as its job says, and reports what became of them. It is forked, and may be killed.
 */
const job = JSON.parse(process.argv[2]!) as Job
const report: Report = {
  booked: [],
  ok: 0,
  refused: 0,
  denied: 0,
  aborted: 0,
  failed: 0,
  longestMs: 0,
  lateMs: [],
}
const store = recording(redisStore(job.redis))
const limiter = createLimiter({
  name: 'provider',
  policies: [gcra(job.policy)],
  store,
  onStoreError: 'throw',
  deadline: '2s',
})
const semaphore =
  job.semaphore && createSemaphore({ name: 'provider', deadline: '2s', store, ...job.semaphore })
const limited = limitFetch(stamped, {
  limiter,
  ...(semaphore && { semaphore }),
  key: 'provider',
  maxWait: '20s',
})
let end = Infinity
let left = job.calls ?? Infinity

process.on('disconnect', () => process.exit())
process.once('message', () => void work())
Promise.all([reachStore(), ...Array.from({ length: 8 }, warmUp)]).then(
  () => process.send!('ready'),
  () => process.exit(1),
)

/** The first answer may take longer than the deadline where all processes start at once. */
async function reachStore(): Promise<void> {
  for (;;) {
    const answered = await limiter.peek('provider').catch(() => undefined)
    if (answered) return
    await sleep(50)
  }
}

/** Tags each request with the instant at which it left, in milliseconds since 1970. */
function stamped(...[, init]: Parameters<typeof fetch>): Promise<Response> {
  return fetch(`${job.origin}/?tag=${performance.timeOrigin + performance.now()}`, init)
}

/** The first calls of a process are slow: code is loaded, connections are made. */
async function warmUp(): Promise<void> {
  await (await fetch(`${job.origin}/warm`)).text()
}

async function work(): Promise<void> {
  if (job.forMs !== undefined) end = performance.now() + job.forMs
  await Promise.all(Array.from({ length: job.callers }, call))
  await Promise.all([limiter.close(), semaphore?.close()])
  report.booked = report.booked.filter(([now]) => now > 0) // without those that were not answered in the end
  process.send!(report)
}

async function call(): Promise<void> {
  while (left-- > 0 && performance.now() < end) {
    const start = performance.now()
    try {
      await (job.direct ? callDirectly() : callLimited())
    } catch (error) {
      if (error instanceof RateLimitExceededError) report.denied++
      else if ((error as Error).name === 'AbortError') report.aborted++
      else {
        report.failed++
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    report.longestMs = Math.max(report.longestMs, performance.now() - start)
  }
}

/** Without priorities: each caller books a turn of its own, and tags its request with the instant of that turn. */
async function callDirectly(): Promise<void> {
  const index = report.booked.length
  const decision = await limiter.acquire('provider', { maxWait: '1h' })
  if (!decision.allowed) throw new Error('denied')
  count(await fetch(`${job.origin}/?tag=${report.booked[index]![1]}`))
}

async function callLimited(): Promise<void> {
  const { abortShare = 0 } = job
  const controller = new AbortController()
  const timer =
    Math.random() < abortShare ? setTimeout(() => controller.abort(), 60 * Math.random()) : undefined
  try {
    count(await limited(job.origin, { signal: controller.signal }))
  } finally {
    clearTimeout(timer)
  }
}

function count(response: Response): void {
  if (response.ok) report.ok++
  else report.refused++
  const lateMs = decisionOf(response)?.lateMs
  if (lateMs !== undefined) report.lateMs.push(lateMs)
  void response.text().catch(() => {})
}

/** Records when each turn was booked, and its instant, in microseconds of the store. Callers book one after the other. */
function recording(inner: Store): Store {
  const notes = (keyspace: Keyspace): Keyspace =>
    new Proxy(keyspace, {
      get(target, name: keyof Keyspace) {
        if (name === 'consume') return undefined // optional: what it decides goes through decide
        if (name !== 'decide') {
          const value: unknown = target[name]
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        }
        return (...args: Parameters<Keyspace['decide']>) => {
          if (args[0] !== 'book') return target.decide(...args)
          const index = report.booked.push([NaN, NaN]) - 1
          return Promise.resolve(target.decide(...args)).then((answer) => {
            if (!answer.reason) report.booked[index] = [answer.now, answer.at]
            return answer
          })
        }
      },
    })
  return {
    guard: inner.guard!,
    keyspace: (...args) => notes(inner.keyspace(...args)),
    permits: (...args) => inner.permits!(...args),
    now: () => inner.now(),
    close: () => inner.close(),
  }
}
