import { Redis } from 'ioredis'
import {
  command,
  type Proxy,
  type RedisServer,
  startProxy,
  startSentinel,
  until,
} from '@sluice/harness/redis'
import type { RedisConnection } from '../../../src/stores/redis/redis-connection.js'
import { connectionOver } from '../../../src/stores/redis/clients/detect.js'
import { ofCluster, ofOneServer } from './client-kinds.js'
import { type ProxiedServers, startProxiedServers } from './proxied-servers.js'

jest.setTimeout(60_000)

const COUNT = "return tostring(redis.call('INCR', KEYS[1]))"
const retrySoon = () => 20

describe('a reply that is lost', () => {
  let servers: ProxiedServers
  beforeAll(async () => void (servers = await startProxiedServers()))
  afterAll(() => servers.stop())

  const once = { executions: 1, replays: false }
  const twice = { executions: 2, replays: true }
  const oneServer: Row[] = ['ioredis', 'iovalkey'].flatMap((kind): Row[] => [
    [kind, {}, twice],
    [kind, { maxRetriesPerRequest: 0 }, once],
    [kind, { maxRetriesPerRequest: 1 }, twice],
    [kind, { maxRetriesPerRequest: null }, twice],
    [kind, { maxRetriesPerRequest: -1 }, twice],
    [kind, { autoResendUnfulfilledCommands: false }, once],
    [kind, { enableOfflineQueue: false }, twice],
    [kind, { commandTimeout: 500 }, twice],
    [kind, { retryStrategy: null }, once],
    [kind, { retryStrategy: retrySoon }, twice],
  ])
  const ofNodes: Row[] = ['ioredis Cluster', 'iovalkey Cluster'].flatMap((kind): Row[] => [
    [kind, {}, twice],
    [kind, { redisOptions: { maxRetriesPerRequest: 0 } }, twice],
    [kind, { redisOptions: { autoResendUnfulfilledCommands: false } }, twice],
    [kind, { redisOptions: { retryStrategy: retrySoon } }, twice],
    [kind, { retryDelayOnFailover: 0 }, once],
    [kind, { clusterNodeRetryStrategy: retrySoon }, twice],
  ])
  const reconnecting = { retryDelayOnFailover: 0, clusterNodeRetryStrategy: retrySoon }
  ofNodes.push(
    ['ioredis Cluster', reconnecting, twice],
    ['ioredis Cluster', { ...reconnecting, redisOptions: { maxRetriesPerRequest: 0 } }, once],
    ['ioredis Cluster', { ...reconnecting, redisOptions: { autoResendUnfulfilledCommands: false } }, once],
  )

  it.each([
    ...oneServer,
    ['ioredis with autopipelining', {}, twice],
    ['node-redis', {}, once],
    ['node-redis', { disableOfflineQueue: true }, once],
    ['a node-redis pool', {}, once],
    ['a connection of its own by options', {}, once],
    ['a connection of its own by URL', {}, once],
  ] satisfies Row[])('of %s with %p: %p', async (kind, options, expected) => {
    const { proxy, server } = servers
    const { connection, end } = await ofOneServer[kind]!(proxy, options)
    const executions = await lose(connection, proxy, server, expected.executions)
    expect({ executions, replays: connection.replays }).toEqual(expected)
    await end()
  })

  it.each([
    ...ofNodes,
    ['node-redis cluster', {}, once],
    ['a Cluster connection of its own', {}, once],
  ] satisfies Row[])('of %s with %p: %p', async (kind, options, expected) => {
    const { clusterProxy, cluster } = servers
    const { connection, end } = await ofCluster[kind]!(clusterProxy, options)
    const executions = await lose(connection, clusterProxy, cluster.masters[0]!, expected.executions)
    expect({ executions, replays: connection.replays }).toEqual(expected)
    await end()
  })
})

describe('a client by Sentinel', () => {
  it('replays as a client without Sentinel does', async () => {
    const setup = await startSentinel()
    const sentinels = setup.sentinels.map(({ host, port }) => ({ host, port }))
    const proxy = await startProxy(setup.master)
    const natMap = { [`${setup.master.host}:${setup.master.port}`]: { host: proxy.host, port: proxy.port } }
    const results = []
    for (const [options, expected] of [
      [{}, 2],
      [{ maxRetriesPerRequest: 0 }, 1],
    ] as const) {
      const redis = new Redis({ sentinels, name: setup.masterName, natMap, ...options })
      const connection = connectionOver(redis)!
      const executions = await lose(connection, proxy, setup.master, expected)
      results.push({ executions, replays: connection.replays })
      redis.disconnect()
    }
    expect(results).toEqual([
      { executions: 2, replays: true },
      { executions: 1, replays: false },
    ])
    await proxy.close()
    await setup.stop()
  })
})

type Row = [kind: string, options: object, expected: { executions: number; replays: boolean }]

let keys = 0

/** How often one call was executed whose reply was cut off. */
async function lose(
  connection: RedisConnection,
  proxy: Proxy,
  server: RedisServer,
  expected: number,
): Promise<number> {
  const name = `lost-${keys++}`
  const key = Buffer.from(name)
  await connection.eval(COUNT, [Buffer.from('warm')], [key])
  const cuts = proxy.counts.cuts
  proxy.cutOnReply()
  connection.eval(COUNT, [key], [key]).catch(() => {})
  await until('the reply to be cut off', () => proxy.counts.cuts > cuts)
  const executions = async () => Number(await command(server, 'GET', name))
  const isTwice = async () => (await executions()) > 1
  if (expected > 1) await until('a second execution', isTwice)
  // Whoever sends again has usually done so by then; that the call rejects first says nothing.
  else await until('a second execution', isTwice, 500).catch(() => {})
  return executions()
}
