// Run by Node, Bun and Deno: prints what went wrong with each part, as JSON. The argument is a URL of Redis.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { checkCore, checkHono, checkLimited } from './check.js'

const web = { core: await checkCore(), hono: await checkHono(), limited: await checkLimited() }
console.log(JSON.stringify({ ...web, redis: await checkRedis() }))
process.exit()

/** @returns {Promise<string[]>} */
async function checkRedis() {
  const store = redisStore(process.argv[2] ?? '')
  const policies = [gcra({ limit: 3, window: '1h' })]
  const limiter = createLimiter({
    name: process.argv[3] ?? '',
    policies,
    store,
    onStoreError: 'throw',
    deadline: '5s',
  })
  try {
    const calls = await Promise.all(Array.from({ length: 5 }, () => limiter.consume('k')))
    const admitted = calls.filter(({ allowed }) => allowed).length
    return admitted === 3 ? [] : [`${admitted} of 5 admitted`]
  } catch (error) {
    return [String(error)]
  } finally {
    await store.close()
  }
}
