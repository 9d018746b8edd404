// A client process: one contender on a connection of its own, which takes loads. Arguments: the contender, its limit,
// and the addresses of the server, or of a Cluster's nodes.
import { checkDecisions } from '../contender.js'
import { answering } from '../processes/child.js'
import { closedLoop } from './closed-loop.js'
import { connect, connectCluster } from './connection.js'
import { contenderNamed } from './contenders.js'

const [name = '', limit = '', addresses = ''] = process.argv.slice(2)
const nodes = JSON.parse(addresses)
const redis = /** @type {import('./connection.js').Client} */ (
  Array.isArray(nodes) ? connectCluster(nodes) : connect(nodes)
)
const open = contenderNamed(name)
const contender = checkDecisions(name, (tight) => open(redis, tight)).then(() =>
  open(redis, JSON.parse(limit)),
)

answering(async (load) => closedLoop(await contender, load))
