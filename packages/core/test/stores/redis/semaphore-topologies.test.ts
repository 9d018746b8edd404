import { Cluster as IoredisCluster, Redis as Ioredis } from 'ioredis'
import { Cluster as IovalkeyCluster, Redis as Iovalkey } from 'iovalkey'
import { createClientPool, createCluster, createSentinel } from 'redis'
import {
  type Address,
  type Cluster,
  command,
  type RedisServer,
  type SentinelSetup,
  startCluster,
  startRedis,
  startSentinel,
  until,
} from '@sluice/harness/redis'
import { createSemaphore, type Semaphore } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { ofItsOwn, type Opened, overIoredis, overNodeRedis } from './opened-stores.js'

jest.setTimeout(60_000)

type Open = (nodes: Address[], masterName: string) => Promise<Opened>

interface Topology {
  /** Nodes to be connected to, and those that publish. */
  readonly nodes: () => readonly Address[]
  readonly publishers: () => readonly Address[]
  readonly open: Open
  /** Whether a message wakes waiting tickets; otherwise they find their permit by polling. */
  readonly wakes: boolean
}

let server: RedisServer
let cluster: Cluster
let sentinel: SentinelSetup
beforeAll(async () => {
  ;[server, cluster, sentinel] = await Promise.all([
    startRedis(),
    startCluster({ masters: 3 }),
    startSentinel(),
  ])
})
afterAll(() => Promise.all([server.stop(), cluster.stop(), sentinel.stop()]))

const inCluster = { nodes: () => cluster.masters, publishers: () => cluster.masters }
const bySentinel = { nodes: () => sentinel.sentinels, publishers: () => [sentinel.master] }
const ofOne = { nodes: () => [server], publishers: () => [server] }

const topologies: Record<string, Topology> = {
  'an ioredis Cluster': {
    ...inCluster,
    open: async (nodes) => overIoredis(new IoredisCluster(nodes, { retryDelayOnFailover: 0 })),
    wakes: true,
  },
  'an iovalkey Cluster': {
    ...inCluster,
    open: async (nodes) => overIoredis(new IovalkeyCluster(nodes, { retryDelayOnFailover: 0 })),
    wakes: true,
  },
  'a node-redis cluster': {
    ...inCluster,
    open: (nodes) => overNodeRedis(createCluster({ rootNodes: nodes.map((socket) => ({ socket })) })),
    wakes: true,
  },
  'a Cluster connection of its own': {
    ...inCluster,
    open: async (nodes) => ofItsOwn(redisStore({ cluster: nodes })),
    wakes: true,
  },
  'ioredis by Sentinel': {
    ...bySentinel,
    open: async (sentinels, name) => overIoredis(new Ioredis({ sentinels, name, maxRetriesPerRequest: 0 })),
    wakes: true,
  },
  'iovalkey by Sentinel': {
    ...bySentinel,
    open: async (sentinels, name) => overIoredis(new Iovalkey({ sentinels, name, maxRetriesPerRequest: 0 })),
    wakes: true,
  },
  'a node-redis sentinel': {
    ...bySentinel,
    open: (nodes, name) => overNodeRedis(createSentinel({ name, sentinelRootNodes: nodes })),
    wakes: true,
  },
  'a connection of its own by Sentinel': {
    ...bySentinel,
    open: async (sentinels, name) => ofItsOwn(redisStore({ sentinels, name })),
    wakes: true,
  },
  'a node-redis pool': {
    ...ofOne,
    open: ([socket]) => overNodeRedis(createClientPool({ socket: socket! }, { cleanupDelay: 100 })),
    wakes: false,
  },
}

describe.each(Object.entries(topologies))('a semaphore over %s', (kind, topology) => {
  const opened: Opened[] = []
  const semaphores: Semaphore[] = []
  let name = ''

  /** Two semaphores, each of a client of its own, as in two processes. */
  beforeAll(async () => {
    const nodes = topology.nodes().map(({ host, port }) => ({ host, port }))
    name = kind.replaceAll(' ', '-')
    for (let i = 0; i < 2; i++) {
      const one = await topology.open(nodes, sentinel.masterName)
      opened.push(one)
      semaphores.push(createSemaphore({ name, limit: 1, lease: '5s', deadline: '5s', store: one.store }))
    }
  })
  afterAll(async () => {
    await Promise.all(semaphores.map((semaphore) => semaphore.close()))
    await Promise.all(opened.map(({ end }) => end()))
  })

  /** Subscriptions of waiting tickets, over all nodes. */
  async function channels(): Promise<number> {
    const pattern = `sluice:4:${name}:semaphore:to:*`
    const found = await Promise.all(
      topology.publishers().map((node) => command<string[]>(node, 'PUBSUB', 'CHANNELS', pattern)),
    )
    return found.flat().length
  }

  it('grants a released permit to a ticket that waits in another process', async () => {
    const held = await semaphores[0]!.acquire()
    const waiting = semaphores[1]!.acquire()
    await held.release()
    const next = await waiting
    expect(next.allowed).toBe(true)
    await next.release()
  })

  if (topology.wakes) {
    it('wakes that ticket by a message without polling, whatever the key', async () => {
      const first = await semaphores[0]!.acquire()
      const waiting = semaphores[1]!.acquire()
      await until('a subscription', async () => (await channels()) === 1)
      await first.release()
      await (await waiting).release()
      const pollAgain = stopPolling()
      try {
        for (const key of Array.from({ length: 12 }, (_, i) => `user${i}`)) {
          const held = await semaphores[0]!.acquire(key)
          const next = semaphores[1]!.acquire(key, { maxWait: '20s' })
          await until('the ticket to be queued', async () => (await queued(key)) === 1)
          await held.release()
          const permit = await next
          expect(permit.allowed).toBe(true)
          await permit.release()
        }
      } finally {
        pollAgain()
      }
    })
  }

  it('does not delay a ticket for long whose message is lost', async () => {
    const held = await semaphores[0]!.acquire('lost')
    const waiting = semaphores[1]!.acquire('lost')
    await until('the ticket to be queued', async () => (await queued('lost')) === 1)
    await Promise.all(topology.publishers().map(killSubscriptions))
    await held.release()
    const next = await waiting
    expect(next.allowed).toBe(true)
    await next.release()
  })

  it('ends its subscription when it closes', async () => {
    const held = await semaphores[0]!.acquire('closed')
    const waiting = semaphores[1]!.acquire('closed')
    if (topology.wakes) await until('a subscription', async () => (await channels()) >= 1)
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: 'CLOSED' }), semaphores[1]!.close()])
    await until('no subscription', async () => (await channels()) === 0)
    await held.release()
  })

  async function queued(key: string): Promise<number> {
    const stored = `sluice:4:${name}:semaphore:${key}`
    const counts = await Promise.allSettled(
      topology.publishers().map((node) => command<number>(node, 'ZCOUNT', stored, '1', '(1099511627776')),
    )
    return counts.reduce((sum, count) => sum + (count.status === 'fulfilled' ? count.value : 0), 0)
  }
})

/** All but those of Sentinels, which would take the master for dead. */
async function killSubscriptions(node: Address): Promise<void> {
  const clients = await command<string>(node, 'CLIENT', 'LIST', 'TYPE', 'pubsub')
  const ids = [...clients.matchAll(/^id=(\d+) (?!.* name=sentinel-)/gm)].map(([, id]) => id!)
  await Promise.all(ids.map((id) => command(node, 'CLIENT', 'KILL', 'ID', id)))
}

/** Stops the poll every 100 ms until the returned function is called. */
function stopPolling(): () => void {
  const real = setTimeout
  const held: (() => void)[] = []
  const start = (task: () => void, ms: number) =>
    ms === 100 ? real(() => held.push(task), 0) : real(task, ms)
  const stopped = jest.spyOn(globalThis, 'setTimeout').mockImplementation(start as never)
  return () => {
    stopped.mockRestore()
    for (const task of held) task()
  }
}
