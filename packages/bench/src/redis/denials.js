// Denials a second for a key that Redis has denied, in a fresh process: who remembers them does not ask again. Of a key
// four costs are remembered, so that most calls of random costs ask.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { randomFrom } from '@sluice/harness/figures'
import { flexibleOnRedis } from '../peers/flexible.js'
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
  'Sluice, decide, blocked by a penalty': () => {
    const limiter = limiterNamed('denied-blocked', 1, { block: '1h' })
    return () => limiter.decide(KEY)
  },
  'Sluice, await consume': () => {
    const limiter = limiterNamed('denied-consume')
    return () => limiter.consume(KEY)
  },
  'Sluice, decide, costs of 1 to 4': () => callsOfRandomCost('denied-few-costs', 4),
  'Sluice, decide, costs of 1 to 100': () => callsOfRandomCost('denied-many-costs', 100),
  'rate-limiter-flexible, inMemoryBlock': () => {
    const limit = { limit: 1, windowMs: 3_600_000 }
    const limiter = flexibleOnRedis(redis, 'block', limit, { inMemoryBlockOnConsumed: 1 })
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
      if (!('allowed' in decision)) decision = await decision
      if (decision.allowed) throw new Error(`${name} admits what was denied`)
    }
    calls += CHUNK
    took = performance.now() - start
  }
  const { user, system } = process.cpuUsage(cpu)
  return { calls, perCpuSecond: (calls / (user + system)) * 1e6 }
})

/**
 * The first call takes all there is.
 * @param {string} name
 * @param {number} most
 */
function callsOfRandomCost(name, most) {
  const limiter = limiterNamed(name, most)
  const random = randomFrom(1)
  let cost = most
  return () => {
    const decision = limiter.decide(KEY, { cost })
    cost = 1 + Math.floor(random() * most)
    return decision
  }
}

/**
 * @param {string} limiter
 * @param {number} limit
 * @param {import('@sluice/core').PenaltyOptions} [penalty]
 */
function limiterNamed(limiter, limit = 1, penalty) {
  const policies = [gcra({ limit, window: '1d' })]
  return createLimiter({
    name: limiter,
    policies,
    store: redisStore(redis),
    ...(penalty && { penalty }),
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
