import { type Answer, command, info } from './command.js'
import { type ClusterNode, nodeTable, type NodeState, startNodes } from './cluster-node.js'
import { moveSlot } from './slot-move.js'
import { until } from './until.js'

export interface Cluster {
  /** As started, the slots in equal parts in this order; a failover changes roles, not these lists. */
  readonly masters: readonly ClusterNode[]
  /** One of each master, in the same order, where there are any. */
  readonly replicas: readonly ClusterNode[]
  /** The table as a running master sees it, with roles and slots of now. */
  nodes(): Promise<NodeState[]>
  slotOf(key: string): Promise<number>
  /** The node that serves a slot now. */
  ownerOf(slot: number): Promise<ClusterNode>
  /** Moves a slot with its keys while clients go on: they see ASK, then MOVED. */
  moveSlot(slot: number, from: ClusterNode, to: ClusterNode): Promise<void>
  /** Resolves when every running node takes commands, knows a master for every slot, and replicas are in sync. */
  ready(): Promise<void>
  stop(): Promise<void>
}

export interface ClusterOptions {
  readonly masters?: number
  /** Of each master. */
  readonly replicas?: 0 | 1
  readonly args?: readonly string[]
}

/** Starts a real Cluster on loopback; takes about 2.5 s: nodes wait 2 s by themselves before they serve. A replica takes
 * over about 2 s after its master's death; the slots of other masters stay served meanwhile. */
export async function startCluster({
  masters: count = 3,
  replicas = 0,
  args = [],
}: ClusterOptions = {}): Promise<Cluster> {
  const all = await startNodes(count * (1 + replicas), args)
  const cluster = handle(all.slice(0, count), all.slice(count))
  try {
    await join(cluster)
    await cluster.ready()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

/** The Cluster of these nodes as tests use it. Questions about all go to any node that is master now. */
function handle(masters: readonly ClusterNode[], replicas: readonly ClusterNode[]): Cluster {
  const all = [...masters, ...replicas]
  // Masters alone: replicas hear of a moved slot only later.
  const anyMaster = () => Promise.any(all.map(asMaster))
  const table = async () => nodeTable(await anyMaster())
  return {
    masters,
    replicas,
    nodes: table,
    slotOf: async (key) => command<number>(await anyMaster(), 'CLUSTER', 'KEYSLOT', key),
    async ownerOf(slot) {
      const owner = (await table()).find(({ slots }) =>
        slots.some(([first, last]) => first <= slot && slot <= last),
      )
      return all.find(({ id }) => id === owner?.id)!
    },
    async moveSlot(slot, from, to) {
      const roles = await Promise.allSettled(all.map(asMaster))
      const reachable = all.filter((_, i) => roles[i]!.status === 'fulfilled')
      await moveSlot(slot, from, to, reachable)
    },
    ready: () => settled(all),
    async stop() {
      await Promise.all(all.map((node) => node.stop()))
    },
  }
}

/**
 * Makes a Cluster of nodes that do not know each other: gives each master its share of the slots, introduces the nodes to the first, and
 * when all know each other gives each replica its master.
 */
async function join({ masters, replicas }: Cluster): Promise<void> {
  const share = SLOTS / masters.length
  for (const [i, node] of masters.entries()) {
    const slots = range(Math.ceil(i * share), Math.ceil((i + 1) * share))
    await command(node, 'CLUSTER', 'ADDSLOTS', ...slots)
    await command(node, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
  }
  const all = [...masters, ...replicas]
  for (const node of all.slice(1)) await command(all[0]!, 'CLUSTER', 'MEET', node.host, node.port)
  await until('every node to know the others', async () => {
    const known = await Promise.all(all.map(async (node) => (await nodeTable(node)).filter(isMet).length))
    return known.every((count) => count === all.length)
  })
  for (const [i, node] of replicas.entries()) await command(node, 'CLUSTER', 'REPLICATE', masters[i]!.id)
}

/** Waits until every node that runs serves, and all have heard whose replicas the others are. */
async function settled(all: readonly ClusterNode[]): Promise<void> {
  await until('the Cluster to be ready', async () => {
    const running = (await Promise.all(all.map(alive))).flatMap((node) => node ?? [])
    if (!(await Promise.all(running.map(serves))).every(Boolean)) return false
    const tables = await Promise.all(running.map(nodeTable))
    const seen = running.map(({ id }) => tables.map((table) => table.find((node) => node.id === id)))
    return seen.every((each) => new Set(each.map((node) => `${node?.role} of ${node?.masterId}`)).size === 1)
  })
}

/**
 * Returns the node if it is a master now.
 * @throws {Error} if it is a replica or does not answer.
 */
async function asMaster(node: ClusterNode): Promise<ClusterNode> {
  const [role] = await command<Answer[]>(node, 'ROLE')
  if (role !== 'master') throw new Error(`the node on port ${node.port} is a ${String(role)}`)
  return node
}

/** Returns the node if it answers, else undefined. */
async function alive(node: ClusterNode): Promise<ClusterNode | undefined> {
  return command(node, 'PING').then(
    () => node,
    () => undefined,
  )
}

/** Whether a node says that the Cluster is sound and all slots are served, and, if it is a replica, that it is connected to its master. */
async function serves(node: ClusterNode): Promise<boolean> {
  const state = await command(node, 'CLUSTER', 'INFO')
  const { role, master_link_status: link } = await info(node, 'replication')
  return (
    /cluster_state:ok/.test(state) &&
    /cluster_slots_ok:16384/.test(state) &&
    (role === 'master' || link === 'up')
  )
}

/** Whether a node is connected to the one that lists it, and both know each other. */
function isMet(node: NodeState): boolean {
  return node.connected && !node.flags.includes('handshake')
}

/** The whole numbers from `from` up to `to`, without `to`. */
function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i)
}

const SLOTS = 16_384
