import { command, pause, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { interrupt, nextLine, type Program, start } from './program.js'
import { type Prometheus, publishedExpressions, startPrometheus } from './prometheus.js'

/** Callers who send at a steady rate, whatever the answers are. */
const CALLERS = [
  { user: 'pro:alice', method: 'POST', path: '/orders', perSecond: 8 },
  { user: 'free:bob', method: 'POST', path: '/orders', perSecond: 4 },
  { user: 'free:carol', method: 'POST', path: '/orders', perSecond: 3 },
  { user: 'pro:dave', method: 'GET', path: '/search', perSecond: 24 },
  { user: 'free:erin', method: 'GET', path: '/search', perSecond: 10 },
  { user: 'free:frank', method: 'GET', path: '/report', perSecond: 12 },
]

/** Seconds before and after the outage, and of it. */
const [HEALTHY_S, OUTAGE_S] = [14, 10]
/** A busy machine is late with answers, which is what this alert says. */
const UNRULY = 'SluiceStoreSlow'

/** In the order in which somebody asks them who was woken up. */
const QUESTIONS = {
  'seconds in which Redis did not decide': `sum_over_time((1 - min(sluice_store_available))[${2 * HEALTHY_S + OUTAGE_S}s:500ms]) / 2`,
  'who decided instead': 'sum by (decided_by) (sluice_decisions_total{decided_by="local"})',
  'who is limited, and by what':
    'sum by (limiter, policy, reason) (sluice_decisions_total{result="denied"}) / on (limiter) group_left sum by (limiter) (sluice_decisions_total)',
  'how close to the limit':
    'sum by (limiter, policy) (sluice_policy_utilization_total{bucket="1"}) / sum by (limiter, policy) (sluice_policy_utilization_total)',
  'denials by tier': 'sum by (limiter, tag) (sluice_tag_decisions_total{result="denied"})',
  'how long calls wait':
    'histogram_quantile(0.99, sum by (le, name) (sluice_acquire_duration_seconds_bucket))',
  'whether 6 orders a second in place of 5 would help':
    'sum by (limiter) (sluice_decisions_total{result=~"denied|would_deny",limiter=~"orders.*"}) / sum by (limiter) (sluice_decisions_total{limiter=~"orders.*"})',
}

let redis: RedisServer
let server: Program
let prometheus: Prometheus
let origin: string

beforeAll(async () => {
  redis = await startRedis()
  server = start('observability/server', {
    REDIS_URL: `redis://${redis.host}:${redis.port}`,
    PORT: '0',
    NODE_NO_WARNINGS: '1', // the degraded store is reported, which is what the test is about
  })
  origin = (await nextLine(server)).replace('Serving on ', '')
  prometheus = await startPrometheus(new URL(origin).host)
}, 300_000)

afterAll(async () => {
  server.child.kill('SIGKILL')
  await prometheus.stop()
  await redis.stop()
})

/** Sends the requests of all callers until the signal aborts. Resolves with how many each path got. */
async function sendTraffic(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const sent = new Map<string, number>()
  const began = performance.now()
  await Promise.all(
    CALLERS.map(async ({ user, method, path, perSecond }) => {
      const calls: Promise<unknown>[] = []
      while (!signal.aborted) {
        calls.push(fetch(`${origin}${path}`, { method, headers: { 'x-user': user } }).then((r) => r.text()))
        sent.set(path, (sent.get(path) ?? 0) + 1)
        await pause(Math.max(0, began + (calls.length * 1000) / perSecond - performance.now()))
      }
      await Promise.all(calls)
    }),
  )
  return sent
}

/** The alerts that fired at some moment of the last seconds. */
async function fired(seconds: number): Promise<readonly string[]> {
  const firing = `last_over_time(ALERTS{alertstate="firing"}[${seconds}s])`
  const series = await prometheus.query(`count by (alertname) (${firing})`)
  const names = series.map(({ labels }) => labels['alertname'] ?? '')
  return names.filter((name) => name !== UNRULY).toSorted()
}

test('an outage of Redis is seen in Prometheus, with exactly its alerts, and every call is counted once', async () => {
  const ended = new AbortController()
  const traffic = sendTraffic(ended.signal)
  await pause(HEALTHY_S * 1000)
  expect(await fired(HEALTHY_S)).toEqual([])
  // Redis carries out no command for a while, as when it is stopped: connections stay open.
  await command(redis, 'CLIENT', 'PAUSE', String(OUTAGE_S * 1000), 'ALL')
  await pause(OUTAGE_S * 1000)
  expect(await fired(OUTAGE_S)).toEqual(['SluiceDecidedWithoutStore', 'SluiceStoreDown'])
  await pause(HEALTHY_S * 1000)
  expect(await fired(2)).toEqual([])
  ended.abort()
  const sent = await traffic
  const now = Date.now() / 1000
  await until('a scrape', async () => (await prometheus.query('max(timestamp(up))'))[0]!.value >= now)

  const silent: string[] = []
  // The service follows no policy file.
  const published = publishedExpressions().filter((each) => !each.includes('sluice_policies_'))
  for (const expression of [...published, ...Object.values(QUESTIONS)])
    if ((await prometheus.query(expression)).length === 0) silent.push(expression)
  expect(silent).toEqual([])
  const [deniedMost] = ((await (await fetch(`${origin}/top-keys`)).json()) as { denied: { key: string }[] })
    .denied
  expect(deniedMost).toMatchObject({ key: expect.stringContaining('alice') as string })
  for (const limiter of ['orders', 'search']) {
    const [sum] = await prometheus.query(`sum(sluice_decisions_total{limiter="${limiter}"})`)
    expect([limiter, sum?.value]).toEqual([limiter, sent.get(`/${limiter}`)])
  }
  expect(await interrupt(server)).toBe(0)
}, 120_000)
