import { type Address, command } from './command.js'
import { BUS_OFFSET } from './free-port.js'
import { BASICS, launch, type RedisServer } from './redis-server.js'

export interface ClusterNode extends RedisServer {
  /** The node's id in the Cluster, the same after a restart. */
  readonly id: string
}

/** A line of CLUSTER NODES. */
export interface NodeState extends Address {
  readonly id: string
  readonly role: 'master' | 'replica'
  /** Of a replica: the id of its master. */
  readonly masterId: string | undefined
  readonly flags: readonly string[]
  readonly connected: boolean
  /** First and last of each range. */
  readonly slots: readonly (readonly [number, number])[]
}

/** Starts so many servers as nodes that do not know each other yet. If one fails to start, all are stopped. */
export async function startNodes(count: number, args: readonly string[]): Promise<ClusterNode[]> {
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startNode(args)))
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const failed = starts.find((start) => start.status === 'rejected')
  if (!failed) return nodes
  await Promise.all(nodes.map((node) => node.stop()))
  throw failed.reason
}

/** Starts one server as a node of a Cluster, which it is alone in so far. */
async function startNode(args: readonly string[]): Promise<ClusterNode> {
  const server = await launch((port) => [...BASICS, ...CLUSTER, '--port', String(port), ...args], BUS_OFFSET)
  return Object.assign(server, { id: await command(server, 'CLUSTER', 'MYID') })
}

/** The nodes of a Cluster as one of them sees them. */
export async function nodeTable(of: Address): Promise<NodeState[]> {
  const lines = await command(of, 'CLUSTER', 'NODES')
  return lines.trimEnd().split('\n').map(parse)
}

/**
 * The state of a node by its line of CLUSTER NODES: `id host:port@bus[,hostname] flags master ping pong epoch link slot ...`. Slots
 * that are moving, as `[slot->-id]`, are left out.
 */
function parse(line: string): NodeState {
  const [id, address, flags, master, , , , link, ...slots] = line.split(' ')
  const [, host, port] = /^(.*):(\d+)@/.exec(address!)!
  return {
    id: id!,
    host: host!,
    port: Number(port),
    role: flags!.includes('master') ? 'master' : 'replica',
    masterId: master === '-' ? undefined : master,
    flags: flags!.split(','),
    connected: link === 'connected',
    slots: slots.filter((slot) => !slot.startsWith('[')).map(rangeOf),
  }
}

/** The first and last slot of a range: `0-5460`, or `7` for one slot. */
function rangeOf(text: string): readonly [number, number] {
  const [first, last = first] = text.split('-').map(Number)
  return [first!, last!]
}

const CLUSTER = [
  '--cluster-enabled',
  'yes',
  '--cluster-node-timeout',
  '1000',
  '--cluster-require-full-coverage',
  'no',
]
