// What every runtime must do: deciding in memory, hashing, waiting, and Hono. Web standards alone, for workerd too.
import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { apiKeyKey } from '@sluice/http'
import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'

const ALGORITHMS = { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket }
/** Of the text `abc`, from FIPS 180-4. */
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

/** @returns {Promise<string[]>} what went wrong. */
export async function checkCore() {
  const wrong = []
  for (const [name, algorithm] of Object.entries(ALGORITHMS)) {
    const limiter = createLimiter({ policies: [algorithm({ limit: 3, window: '1h' })] })
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

export function honoApp() {
  const app = new Hono()
  app.use(rateLimit({ limit: 3, window: '1h', key: () => 'everybody' }))
  return app.get('/', (c) => c.text('served'))
}
