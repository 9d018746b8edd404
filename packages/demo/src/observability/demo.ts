import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Demo } from '../demo.js'
import { readOptions } from '../options.js'
import { openOwnRedis } from '../redis-server.js'
import { mark, paint, verdict } from '../terminal/paint.js'
import { Prometheus, publishedExpressions } from './prometheus.js'
import { answers } from './questions.js'
import { sendTraffic } from './traffic.js'

const HEALTHY_S = 14
const AFTER_S = 14
/** A busy machine is late with answers, which is what SluiceStoreSlow says. */
const UNRULY = 'SluiceStoreSlow'
const OUTAGE_ALERTS = ['SluiceDecidedWithoutStore', 'SluiceStoreDown']

export const observability: Demo = {
  usage: `Usage: npm run demo -- observability [options]

Runs examples/observability with a Redis and a Prometheus of its own (Debian's, which
is installed when there is none), stops Redis for a while, and asks Prometheus what
happened. A minute of the alerts is a second here.

  --outage N     seconds in which Redis answers nothing, 5 to 600 (default: 10)
  --help         show this`,

  async run(args, stop) {
    const { outage } = readOptions(args, { outage: { least: 5, most: 600, default: 10 } })
    const redis = await openOwnRedis()
    process.env['REDIS_URL'] = redis.url
    process.env['PORT'] = '0'
    let prometheus: Prometheus | undefined
    let server: Server | undefined
    try {
      server = (await import('@sluice/examples/observability/server.js')).server
      const { port } = server.address() as AddressInfo
      prometheus = await Prometheus.start(`127.0.0.1:${port}`)
      console.log(`Scraped by Prometheus on ${prometheus.origin}`)
      return await watch(`http://127.0.0.1:${port}`, prometheus, redis.url, outage, stop)
    } finally {
      await prometheus?.stop()
      server?.close()
      server?.closeAllConnections()
      await redis.stop()
    }
  },
}

/**
 * Sends traffic while Redis answers, while it does not for `outage` seconds, and afterwards, and prints after each which alerts fired
 * and whether these are the right ones. Returns whether all checks held.
 */
async function watch(
  origin: string,
  prometheus: Prometheus,
  redisUrl: string,
  outage: number,
  stop: AbortSignal,
): Promise<boolean> {
  const ended = new AbortController()
  const traffic = sendTraffic(origin, AbortSignal.any([ended.signal, stop]))
  const checks: boolean[] = []
  const check = (holds: boolean, text: string): void => {
    checks.push(holds)
    console.log(`${mark(holds)} ${text}`)
  }
  const pass = (seconds: number): Promise<void> =>
    sleep(seconds * 1000, undefined, { signal: stop }).catch(() => {})

  const fired = async (seconds: number): Promise<readonly string[]> =>
    (await prometheus.fired(seconds)).filter((name) => name !== UNRULY)

  console.log(paint('dim', `${HEALTHY_S} s of traffic`))
  await pass(HEALTHY_S)
  const before = await fired(HEALTHY_S)
  check(before.length === 0, `while Redis answers, no alert fires ${before.join(', ')}`)

  console.log(paint('dim', `Redis answers nothing for ${outage} s`))
  await pause(redisUrl, outage)
  await pass(outage)
  const during = await fired(outage)
  check(
    during.join() === OUTAGE_ALERTS.join(),
    `in the outage these fire, and no others: ${during.join(', ')}`,
  )

  console.log(paint('dim', `${AFTER_S} s of traffic`))
  await pass(AFTER_S)
  const after = await fired(2)
  check(after.length === 0, `afterwards no alert fires ${after.join(', ')}`)
  ended.abort()
  const sent = await traffic
  if (stop.aborted) return false
  await prometheus.nextScrape()

  const { text, missing } = await answers(prometheus, HEALTHY_S + outage + AFTER_S)
  console.log(`\n${text}`)
  console.log(
    `${paint('bold', 'Which keys (asked of the process, as no metric says it)')}\n${await topKeys(origin)}\n`,
  )
  check(missing === 0, 'Prometheus answers every question')
  const silent: string[] = []
  // The service follows no policy file.
  const expressions = publishedExpressions().filter((each) => !each.includes('sluice_policies_'))
  for (const expression of expressions) {
    if ((await prometheus.query(expression)).length === 0) silent.push(expression)
  }
  check(
    silent.length === 0,
    `all ${expressions.length} expressions of panels and alerts give series ${silent.join('\n  ')}`,
  )
  for (const [path, limiter] of [
    ['/orders', 'orders'],
    ['/search', 'search'],
  ] as const) {
    const [sum] = await prometheus.query(`sum(sluice_decisions_total{limiter="${limiter}"})`)
    check(
      sum?.value === sent.get(path),
      `${sent.get(path)} calls of ${path} were sent, and ${sum?.value} counted`,
    )
  }
  const held = checks.every(Boolean)
  console.log(`\n${verdict(held, held ? 'Everything was seen.' : 'Not everything was seen.')}`)
  return held
}

/** Redis carries out no command for a while, as when it is stopped: connections stay open. */
async function pause(redisUrl: string, seconds: number): Promise<void> {
  const { hostname, port } = new URL(redisUrl)
  const socket = connect(Number(port), hostname)
  socket.write(`CLIENT PAUSE ${seconds * 1000} ALL\r\n`)
  await once(socket, 'data')
  socket.destroy()
}

/** The keys with most denials, as the service lists them itself: a line each, with the possible error of the count. */
async function topKeys(origin: string): Promise<string> {
  const response = await fetch(`${origin}/top-keys`)
  const { denied } = (await response.json()) as { denied: { key: string; count: number; error: number }[] }
  return denied
    .map(
      ({ key, count, error }) =>
        `  ${String(count).padStart(8)}  ${key}${error > 0 ? `, or ${error} fewer` : ''}`,
    )
    .join('\n')
}
