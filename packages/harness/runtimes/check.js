// What every runtime must do: deciding in memory, hashing, waiting, Hono, and handlers behind a limit. Web standards alone, for workerd too.
import '@sluice/calendar' // a Temporal for runtimes that have none
import { createLimiter, fixedWindow, gcra } from '@sluice/core'
import { algorithms } from '@sluice/core/store'
import { apiKeyKey, limited, limitRequest } from '@sluice/http'
import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'

/** Of the text `abc`, from FIPS 180-4. */
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

const HOUR_MS = 3_600_000

/** Days that begin at 02:30 in Berlin, and their ends when its clocks go from 02:00 to 03:00. */
const DAY_OF_BERLIN = { every: 'day', timeZone: 'Europe/Berlin', anchor: '2024-01-31T02:30' }
const ENDS_IN_BERLIN =
  '2025-03-29T01:30:00.000Z,2025-03-30T01:00:00.000Z,2025-03-31T00:30:00.000Z,2025-04-01T00:30:00.000Z'

/** Made with the module, which workerd loads while its clocks stand still: its windows are aligned to the epoch. */
const ofModule = createLimiter({ policies: [fixedWindow({ limit: 1, window: '1h' })] })

/** @returns {Promise<string[]>} what went wrong. */
export async function checkCore() {
  /** @type {string[]} */
  const wrong = []
  const { resetAfterMs } = await ofModule.consume('k')
  const ms = (Date.now() + resetAfterMs) % HOUR_MS
  if (Math.min(ms, HOUR_MS - ms) > 2000) wrong.push(`a window of a module ends ${ms} ms after the hour`)
  for (const [name, factory] of Object.entries(algorithms)) {
    const algorithm = /** @type {import('@sluice/core').PolicyFactory<object>} */ (factory)
    const length = 'window' in factory.options ? { window: '1h' } : DAY_OF_BERLIN
    const policy = algorithm({ limit: 3, ...length })
    const ends = policy.calendar
      ?.around(Date.UTC(2025, 2, 30, 12) * 1000)
      .map((at) => new Date(at / 1000).toISOString())
    if (ends && String(ends) !== ENDS_IN_BERLIN) wrong.push(`${name}: ${String(ends)}`)
    const limiter = createLimiter({ policies: [policy] })
    const allowed = []
    for (let i = 0; i < 5; i++) allowed.push((await limiter.consume('k'.repeat(300))).allowed)
    if (String(allowed) !== 'true,true,true,false,false') wrong.push(`${name}: ${String(allowed)}`)
    await limiter.close()
  }
  const evenly = createLimiter({ policies: [gcra({ limit: 20, window: '1s', burst: 1 })] })
  await evenly.acquire('k')
  const { allowed, waitMs } = await evenly.acquire('k')
  if (!allowed || waitMs < 1 || waitMs > 1000) wrong.push(`acquire: ${String(allowed)} after ${waitMs} ms`)
  if (apiKeyKey('abc') !== `api-key:${ABC}`) wrong.push(`SHA-256: ${apiKeyKey('abc')}`)
  return wrong
}

/** @returns {Promise<string[]>} what went wrong. */
export async function checkHono() {
  const app = honoApp()
  const statuses = []
  for (let i = 0; i < 5; i++) statuses.push((await app.request('/')).status)
  return String(statuses) === '200,200,200,429,429' ? [] : [`statuses ${String(statuses)}`]
}

/**
 * The cases of the adapters' kit that need no connection, for `limited` and `limitRequest`.
 * @returns {Promise<string[]>} what went wrong.
 */
export async function checkLimited() {
  /** @type {string[]} */
  const wrong = []
  /**
   * @param {string} what
   * @param {unknown} seen
   * @param {unknown} expected
   */
  const is = (what, seen, expected) =>
    void (String(seen) === String(expected) || wrong.push(`${what}: ${String(seen)}`))
  /** @param {Record<string, string>} [headers] */
  const request = (headers = {}) => new Request('http://sluice/', { headers })
  const ONE = /** @type {const} */ ({ limit: 1, window: '1h' })
  const keyed = { ...ONE, key: () => 'everybody' }

  const serve = limited(() => new Response('served'), keyed)
  const [first, denied] = [await serve(request()), await serve(request())]
  is('served', [first.status, await first.text(), first.headers.get('x-ratelimit-remaining')], '200,served,0')
  const { title, status } = /** @type {Record<string, unknown>} */ (await denied.json())
  is(
    'denied',
    [denied.status, denied.headers.get('retry-after'), title, status],
    '429,3600,Quota Exceeded,429',
  )
  is('the type of a denial', denied.headers.get('content-type'), 'application/problem+json')

  const redirect = limited(() => Response.redirect('http://sluice/there', 302), keyed)
  const { status: moved, headers } = await redirect(request())
  const redirected = [moved, headers.get('location'), headers.get('x-ratelimit-limit')]
  is('headers of a redirect', redirected, '302,http://sluice/there,1')

  /** @type {string[]} */
  const seen = []
  const limiter = createLimiter({ policies: [gcra({ limit: 9, window: '1h' })] })
  limiter.on('warning', ({ code }) => void seen.push(code))
  limiter.on('decision', ({ key }) => void seen.push(key))
  const forged = { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' }
  await limitRequest({ limiter })(request(), { address: undefined })
  await limitRequest({ limiter })(request(forged), { address: '192.0.2.1' })
  await limitRequest({ limiter, trustProxy: 1 })(request(forged), { address: '192.0.2.1' })
  const keys = 'ADDRESS_UNKNOWN,ip:unknown,FORWARDED_NOT_TRUSTED,ip:192.0.2.1,ip:198.51.100.7'
  is('keys and warnings', seen, keys)

  const shared = createLimiter({ policies: [gcra(ONE)] })
  const shouldCharge = (/** @type {Request} */ _, /** @type {{ status: number }} */ response) =>
    response.status < 400
  const failing = limited(() => new Response('failed', { status: 500 }), {
    limiter: shared,
    key: () => 'k',
    shouldCharge,
  })
  const failed = await failing(request())
  const before = (await shared.peek('k')).remaining
  await failed.text()
  await new Promise((resolve) => setTimeout(resolve, 0))
  is('left before and after a failure is sent', [before, (await shared.peek('k')).remaining], '0,1')

  const answering = limited(() => new Response(''), {
    ...keyed,
    onDenied: (_, response) => new Response('slow down', response),
  })
  await answering(request())
  const answered = await answering(request())
  is('the answer of onDenied', [answered.status, await answered.text()], '429,slow down')
  return wrong
}

export function honoApp() {
  const app = new Hono()
  app.use(rateLimit({ limit: 3, window: '1h', key: () => 'everybody' }))
  return app.get('/', (c) => c.text('served'))
}
