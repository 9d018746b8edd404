// One build on one path over Redis, in a process of its own with one ioredis connection. Arguments: the checkout, the
// path, the prefix of its keys, and the addresses of the servers. It takes loads.
import { answering } from '../processes/child.js'
import { connect, connectCluster } from '../redis/connection.js'
import { closedLoop } from '../redis/loops/closed.js'
import { limitedCalls } from './limited-calls.js'
import { libraryOf } from './library.js'
import { redisPaths } from './redis-paths.js'

const [root = '', name = '', prefix = '', addresses = ''] = process.argv.slice(2)
const path = redisPaths[name]
if (!path) throw new Error(`no path is called ${name}`)
const { policies, callers, keys, cluster, together } = path
const nodes = JSON.parse(addresses)
const redis = cluster ? connectCluster(nodes) : connect(nodes[0])

/** @type {Promise<import('../contender.js').Contender>} */
const contender = libraryOf(root).then((library) => {
  const store = library.redisStore(redis, { prefix, denialCache: false })
  return limitedCalls(library, store, policies(library), together)
})
let from = 0

answering(async (/** @type {{ calls: number, callers?: number }} */ load) => {
  const seen = await closedLoop(await contender, { callers, keys, from, ...load })
  from += seen.calls
  return seen
})
