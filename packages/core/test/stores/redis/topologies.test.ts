import { Cluster as IoredisCluster, Redis as Ioredis } from 'ioredis'
import { Cluster as IovalkeyCluster, Redis as Iovalkey } from 'iovalkey'
import { createCluster, createSentinel } from 'redis'
import {
  type Address,
  type Cluster,
  command,
  type SentinelSetup,
  startCluster,
  startSentinel,
} from '@sluice/harness/redis'
import {
  createLimiter,
  gcra,
  type Limiter,
  type Policy,
  slidingLog,
  slidingWindow,
  type Store,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { ofItsOwn, type Opened, overIoredis, overNodeRedis } from './opened-stores.js'

jest.setTimeout(60_000)

type Open = (nodes: Address[], masterName: string) => Promise<Opened>

const byCluster: Record<string, Open> = {
  'ioredis Cluster': async (nodes) => overIoredis(new IoredisCluster(nodes, { retryDelayOnFailover: 0 })),
  'iovalkey Cluster': async (nodes) => overIoredis(new IovalkeyCluster(nodes, { retryDelayOnFailover: 0 })),
  'node-redis cluster': (nodes) =>
    overNodeRedis(createCluster({ rootNodes: nodes.map((socket) => ({ socket })) })),
  'a Cluster connection of its own': async (cluster) => ofItsOwn(redisStore({ cluster })),
  'ioredis Cluster with groups': async (nodes) =>
    overIoredis(new IoredisCluster(nodes, { retryDelayOnFailover: 0 }), { groups: 16 }),
  'iovalkey Cluster with groups': async (nodes) =>
    overIoredis(new IovalkeyCluster(nodes, { retryDelayOnFailover: 0 }), { groups: 16 }),
  'node-redis cluster with groups': (nodes) =>
    overNodeRedis(createCluster({ rootNodes: nodes.map((socket) => ({ socket })) }), { groups: 16 }),
  'a Cluster connection of its own with groups': async (cluster) =>
    ofItsOwn(redisStore({ cluster }, { groups: 16 })),
}

const bySentinel: Record<string, Open> = {
  'ioredis by Sentinel': async (sentinels, name) =>
    overIoredis(new Ioredis({ sentinels, name, maxRetriesPerRequest: 0 })),
  'iovalkey by Sentinel': async (sentinels, name) =>
    overIoredis(new Iovalkey({ sentinels, name, maxRetriesPerRequest: 0 })),
  'node-redis sentinel': (sentinelRootNodes, name) =>
    overNodeRedis(createSentinel({ name, sentinelRootNodes })),
  'a connection of its own by Sentinel': async (sentinels, name) => ofItsOwn(redisStore({ sentinels, name })),
}

let cluster: Cluster
let sentinel: SentinelSetup
beforeAll(async () => {
  ;[cluster, sentinel] = await Promise.all([startCluster({ masters: 3 }), startSentinel()])
})
afterAll(() => Promise.all([cluster.stop(), sentinel.stop()]))
beforeEach(async () => {
  await Promise.all([...cluster.masters, sentinel.master].map((node) => command(node, 'FLUSHALL')))
})

describe.each([...Object.entries(byCluster), ...Object.entries(bySentinel)])(
  'a limiter over %s',
  (kind, open) => {
    let opened: Opened
    beforeAll(async () => {
      const nodes = kind in byCluster ? cluster.masters : sentinel.sentinels
      opened = await open(
        nodes.map(({ host, port }) => ({ host, port })),
        sentinel.masterName,
      )
    })
    afterAll(() => opened.end())

    it('admits exactly the limit of concurrent calls for each of many callers', async () => {
      const limiter = limiterOver(opened.store, 'race')
      const admitted = await Promise.all(
        callers(40).map(async (key) => {
          const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)))
          return decisions.filter(({ allowed }) => allowed).length
        }),
      )
      expect(admitted).toEqual(callers(40).map(() => 10))
    })

    it('decides by several policies at once, and charges none on refusal', async () => {
      const limiter = limiterOver(opened.store, 'several', [
        gcra({ limit: 10, window: '1d' }),
        slidingLog({ limit: 4, window: '1d', name: 'log' }),
        slidingWindow({ limit: 100, window: '1d', name: 'window' }),
      ])
      expect(await limiter.consume('k', { cost: 4 })).toMatchObject({
        allowed: true,
        policy: 'log',
        remaining: 0,
      })
      const denied = await limiter.consume('k', { cost: 2 })
      expect(denied).toMatchObject({ allowed: false, policy: 'log', reason: 'limit' })
      expect(denied.policies.map(({ remaining }) => remaining)).toEqual([6, 0, 96])
    })

    it('makes callers wait for their turn', async () => {
      const limiter = limiterOver(opened.store, 'quick', [gcra({ limit: 10, window: '1s', burst: 1 })])
      const turns = await Promise.all([1, 2, 3].map(() => limiter.acquire('waits')))
      expect(turns.map(({ allowed }) => allowed)).toEqual([true, true, true])
      expect(Math.max(...turns.map(({ waitMs }) => waitMs))).toBeGreaterThan(100)
    })

    it('refunds, blocks, resets and holds', async () => {
      const limiter = limiterOver(opened.store, 'slow')
      await limiter.consume('gives', { cost: 10 })
      await limiter.refund('gives', { cost: 3 })
      expect((await limiter.peek('gives')).remaining).toBe(3)
      await limiter.block('gives', '1h')
      expect((await limiter.consume('gives')).reason).toBe('blocked')
      await limiter.reset('gives')
      expect((await limiter.consume('gives')).remaining).toBe(9)
      await limiter.hold('gives', '1h')
      expect((await limiter.consume('gives')).reason).toBe('held')
    })

    it('settles a decision', async () => {
      const limiter = limiterOver(opened.store, 'settled')
      const decision = await limiter.consume('k', { cost: 8 })
      await decision.settle(2)
      expect((await limiter.peek('k')).remaining).toBe(8)
    })
  },
)

describe.each(Object.entries(byCluster))('%s', (_kind, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(
      cluster.masters.map(({ host, port }) => ({ host, port })),
      '',
    )
  })
  afterAll(() => opened.end())

  it.each(['', '{same}', '}{', '{}'])(
    'spreads callers over all masters, whose keys begin with %p',
    async (braces) => {
      const limiter = limiterOver(opened.store, '{same}')
      await Promise.all(callers(90).map((key) => limiter.consume(`${braces}${key}`)))
      const sizes = await Promise.all(cluster.masters.map(keyCount))
      expect(sizes.reduce((sum, size) => sum + size)).toBe(90)
      expect(Math.min(...sizes)).toBeGreaterThan(10)
    },
  )
})

it('warns that a sentinel of node-redis may send a call twice', async () => {
  const nodes = sentinel.sentinels.map(({ host, port }) => ({ host, port }))
  const { store, end } = await bySentinel['node-redis sentinel']!(nodes, sentinel.masterName)
  const limiter = limiterOver(store, 'warned')
  const codes: string[] = []
  limiter.on('warning', ({ code }) => codes.push(code))
  await limiter.consume('k')
  expect(codes).toEqual(['CLIENT_REPLAYS'])
  await end()
})

function limiterOver(
  store: Store,
  name: string,
  policies: readonly Policy[] = [slidingLog({ limit: 10, window: '1d' })],
): Limiter {
  const limiter = createLimiter({ name, store, policies, deadline: '5s', onStoreError: 'throw' })
  limiter.on('warning', () => {})
  return limiter
}

function callers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `user:${i}`)
}

function keyCount(node: Address): Promise<number> {
  return command<number>(node, 'DBSIZE')
}
