// One build on one path over Redis, in a process of its own with one ioredis connection. Arguments: the checkout, the
// path, the prefix of its keys, and the addresses of the servers. It takes loads.
import { answering } from '../processes/child.js'
import { connect, connectCluster } from '../redis/connection.js'
import { closedLoop } from '../redis/loops/closed.js'
import { libraryOf } from './library.js'
import { redisPaths } from './redis-paths.js'

const [root = '', name = '', prefix = '', addresses = ''] = process.argv.slice(2)
const path = redisPaths[name]
if (!path) throw new Error(`no path is called ${name}`)
const { policies, callers, keys, cluster, together } = path
const nodes = JSON.parse(addresses)
const redis = cluster ? connectCluster(nodes) : connect(nodes[0])

/** Nothing is answered but by Redis, and no deadline cuts a slow answer off. @type {Promise<import('../contender.js').Contender>} */
const contender = libraryOf(root).then((library) => {
  const store = library.redisStore(redis, { prefix, denialCache: false })
  const rest = /** @type {const} */ ({ onStoreError: 'throw', deadline: '10s' })
  const open = (/** @type {string} */ name) =>
    library.createLimiter({ name, policies: policies(library), store, ...rest })
  const [limiter, other] = [open('bench'), open('other')]
  if (!together) return { call: (key) => limiter.consume(key), allowed: (decision) => decision.allowed }
  return {
    call: (key) =>
      library.consumeAll([
        { limiter, key },
        { limiter: other, key },
      ]),
    allowed: (whole) => whole.allowed,
  }
})
let from = 0

answering(async (/** @type {{ calls: number, callers?: number }} */ load) => {
  const seen = await closedLoop(await contender, { callers, keys, from, ...load })
  from += seen.calls
  return seen
})
