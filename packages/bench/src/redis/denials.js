// Denials a second for a key that Redis has denied, in a fresh process: who remembers them does not ask again.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { answering } from '../processes/child.js'
import { connect } from './connection.js'

const [name = '', address = ''] = process.argv.slice(2)
const redis = connect(JSON.parse(address))
const KEY = 'denied'
const CHUNK = 100

/** Each gives whether a call of the key was denied. @type {Record<string, () => (() => any)>} */
const contenders = {
  'Sluice, decide': () => {
    const limiter = limiterNamed('denied-decide')
    return () => limiter.decide(KEY)
  },
  'Sluice, await consume': () => {
    const limiter = limiterNamed('denied-consume')
    return () => limiter.consume(KEY)
  },
  'rate-limiter-flexible, inMemoryBlock': () => {
    const options = { keyPrefix: 'block', points: 1, duration: 3600, inMemoryBlockOnConsumed: 1 }
    const limiter = new RateLimiterRedis({ storeClient: redis, ...options })
    return () => limiter.consume(KEY).then(admitted, denied)
  },
}

const call = contenders[name]?.() ?? (() => undefined)

answering(async (/** @type {{ ms: number }} */ { ms }) => {
  let calls = 0
  let took = 0
  while ((await call()).allowed) if (++calls > 1) throw new Error(`${name} admits more than the limit`)
  calls = 0
  const start = performance.now()
  const cpu = process.cpuUsage()
  while (took < ms) {
    for (let i = 0; i < CHUNK; i++) {
      let decision = call()
      if (decision instanceof Promise) decision = await decision
      if (decision.allowed) throw new Error(`${name} admits what was denied`)
    }
    calls += CHUNK
    took = performance.now() - start
  }
  const { user, system } = process.cpuUsage(cpu)
  return { calls, perCpuSecond: (calls / (user + system)) * 1e6 }
})

/** @param {string} limiter */
function limiterNamed(limiter) {
  const policies = [gcra({ limit: 1, window: '1h' })]
  return createLimiter({
    name: limiter,
    policies,
    store: redisStore(redis),
    onStoreError: 'throw',
    deadline: '10s',
  })
}

function admitted() {
  return { allowed: true }
}

function denied() {
  return { allowed: false }
}
