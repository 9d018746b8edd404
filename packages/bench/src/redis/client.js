// A client process: one contender on a connection of its own, which takes loads. Arguments: the contender, its limit,
// and the addresses of the server, or of a Cluster's nodes.
import { checkDecisions } from '../contender.js'
import { answering } from '../processes/child.js'
import { connect, connectCluster } from './connection.js'
import { contenderNamed } from './contenders.js'
import { closedLoop } from './loops/closed.js'
import { openLoop } from './loops/open.js'
import { timedLoop } from './loops/timed.js'

const [name = '', limit = '', addresses = ''] = process.argv.slice(2)
const nodes = JSON.parse(addresses)
const redis = /** @type {import('./connection.js').Client} */ (
  Array.isArray(nodes) ? connectCluster(nodes) : connect(nodes)
)
const open = contenderNamed(name)
const contender = checkDecisions(name, (tight) => open(redis, tight)).then(() =>
  open(redis, JSON.parse(limit)),
)

const loops = { closed: closedLoop, open: openLoop, timed: timedLoop }

answering(async (/** @type {import('./clients.js').AnyLoad} */ load) =>
  loops[load.loop ?? 'closed'](await contender, /** @type {any} */ (load)),
)
