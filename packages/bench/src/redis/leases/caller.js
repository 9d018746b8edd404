// A process with leases that calls for one key and tells when it was served. It rests after a denial, so that the store
// has something to lease again, and where it is told to also between: what it holds grows old meanwhile. Arguments: the algorithm, and Redis's address.
import { createLimiter, gcra, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { answering } from '../../processes/child.js'
import { connect } from '../connection.js'

/**
 * @typedef {object} Job
 * @property {string} name Of the limiter.
 * @property {number} limit
 * @property {number} windowMs
 * @property {number} ttlMs
 * @property {boolean} rests
 * @property {number} ms How long.
 *
 * @typedef {object} Seen
 * @property {Float64Array} servedAt In microseconds of the clock that all processes of the machine share.
 * @property {number} fromMemory How many of them.
 * @property {number} slow How many answers came later than a lease lasts.
 * @property {number} denied
 */

const CALLERS = 64
/** Calls after which one rests that is told to, as a mean. */
const CALLS = 300
const policies = { gcra, slidingLog }
const [algorithm = '', address = ''] = process.argv.slice(2)
const redis = connect(JSON.parse(address))

answering(async (/** @type {Job} */ { name, limit, windowMs, ttlMs, rests, ms }) => {
  const policy = policies[/** @type {keyof typeof policies} */ (algorithm)]({ limit, window: windowMs })
  const limiter = createLimiter({
    name,
    policies: [policy],
    store: redisStore(redis),
    leases: { ttl: ttlMs, size: 1000 },
    onStoreError: 'throw',
    deadline: '10s',
  })
  /** @type {number[]} */
  const servedAt = []
  const count = { fromMemory: 0, slow: 0, denied: 0 }
  let restsUntil = 0
  const call = async () => {
    const begun = nowUs()
    const answer = limiter.decide('hot')
    const isFromMemory = !(answer instanceof Promise)
    const { allowed } = await answer
    const heard = nowUs()
    if (!allowed) {
      count.denied++
      restsUntil = heard + Math.random() * ttlMs * 1000
      return
    }
    if (rests && Math.random() < 1 / CALLS) restsUntil = heard + Math.random() * ttlMs * 1000
    if (isFromMemory) {
      // The slice was filled before, and looked at after: it lasted at this moment.
      servedAt.push(begun)
      count.fromMemory++
    } else if (heard - begun < ttlMs * 1000) servedAt.push(heard)
    else count.slow++
  }
  const end = nowUs() + ms * 1000
  const caller = async () => {
    while (nowUs() < end) {
      if (nowUs() < restsUntil) await new Promise((resolve) => setTimeout(resolve, 1))
      else await call()
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return { servedAt: Float64Array.from(servedAt), ...count }
})

function nowUs() {
  return Number(process.hrtime.bigint()) / 1000
}
