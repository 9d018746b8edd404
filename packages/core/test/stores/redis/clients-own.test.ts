import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import * as ioredis from 'ioredis'
import * as iovalkey from 'iovalkey'
import * as nodeRedis from 'redis'
import {
  command,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  startSentinel,
  until,
} from '@sluice/harness/redis'
import { PolicyError, type StoreError } from '../../../src/values/errors.js'
import type { RedisConnection } from '../../../src/stores/redis/redis-connection.js'
import { type Endpoint, endpointOf } from '../../../src/stores/redis/connection/endpoint.js'
import { storeError, storeFailure } from '../../../src/stores/redis/clients/failure.js'
import { OwnConnection } from '../../../src/stores/redis/connection/own.js'
import { openIoredis } from '../../../src/stores/redis/connection/own-ioredis.js'
import { openNodeRedis } from '../../../src/stores/redis/connection/own-node-redis.js'

jest.setTimeout(60_000)

const ECHO = 'return ARGV[1]'
const WRITE = "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]"
const COUNT = "return tostring(redis.call('INCR', KEYS[1]))"
const K = Buffer.from('k')

describe('a connection of its own', () => {
  let server: RedisServer
  beforeEach(async () => {
    server = await startRedis()
  })
  afterEach(() => server.stop())

  it('queues the calls that are made while it connects', async () => {
    const connection = new OwnConnection({ host: server.host, port: server.port })
    const replies = await Promise.all(Array.from({ length: 100 }, () => connection.eval(ECHO, [K], [K])))
    expect(replies.every((reply) => Buffer.compare(reply as Uint8Array, K) === 0)).toBe(true)
    connection.close()
  })

  it('decides again after Redis was down for seconds', async () => {
    const connection = new OwnConnection({ host: server.host, port: server.port })
    await connection.eval(ECHO, [K], [K])
    await server.kill()
    const down = Date.now()
    while (Date.now() - down < 1500) {
      expect(storeFailure(await failure(connection))).toBe('unavailable')
      await pause(50)
    }
    await server.restart()
    await recovery(connection)
    connection.close()
  })

  it('connects to a Redis that starts later', async () => {
    await server.kill()
    const connection = new OwnConnection({ host: server.host, port: server.port })
    expect(storeFailure(await failure(connection))).toBe('unavailable')
    await pause(500)
    await server.restart()
    await recovery(connection)
    connection.close()
  })

  it('decides again after Redis was stopped and after a partition, however long they lasted', async () => {
    const proxy = await startProxy(server)
    const connection = new OwnConnection({ host: proxy.host, port: proxy.port })
    for (const ms of [300, 1300]) {
      await connection.eval(ECHO, [K], [K])
      server.pause()
      void failure(connection)
      await pause(ms)
      server.resume()
      await recovery(connection)
      proxy.blackHole()
      void failure(connection)
      await pause(ms)
      await proxy.heal()
      await recovery(connection)
    }
    connection.close()
    await proxy.close()
  })

  it('gives up on a peer that vanished without closing', async () => {
    const proxy = await startProxy(server)
    const connection = new OwnConnection({ host: proxy.host, port: proxy.port })
    await connection.eval(ECHO, [K], [K])
    proxy.blackHole()
    expect(storeFailure(await failure(connection))).toBe('unavailable')
    connection.close()
    await proxy.close()
  })

  it('distinguishes calls that were never written from those whose reply was lost', async () => {
    const sent = (error: unknown) => (storeError(error) as StoreError).sent
    const proxy = await startProxy(server)
    const connection = new OwnConnection({ host: proxy.host, port: proxy.port })
    await connection.eval(ECHO, [K], [K])
    proxy.cutOnReply()
    expect(sent(await failure(connection))).toBe(true)
    await proxy.refuse()
    await until('the connection to be given up', async () => sent(await failure(connection)) === false)
    await proxy.close()
    connection.close()
    const early = new OwnConnection({ host: proxy.host, port: proxy.port })
    expect(sent(await failure(early))).toBe(false)
    early.close()
  })

  it('queues at most 1,000 calls', async () => {
    await server.kill()
    const connection = new OwnConnection({ host: server.host, port: server.port })
    const failures = await Promise.all(Array.from({ length: 1010 }, () => failure(connection)))
    const turnedAway = failures.filter((error) => (error as Error).message.startsWith('1000 calls wait'))
    expect(turnedAway).toHaveLength(10)
    expect(new Set(failures.map(storeFailure))).toEqual(new Set(['unavailable']))
    connection.close()
  })

  it('settles every call when it is closed, also in the middle of an outage, and refuses later ones', async () => {
    const connection = new OwnConnection({ host: server.host, port: server.port })
    const early = failure(connection)
    connection.close()
    expect(await early).toMatchObject({ code: 'CLOSED' })
    const second = new OwnConnection({ host: server.host, port: server.port })
    await second.eval(ECHO, [K], [K])
    server.pause()
    const waiting = failure(second)
    second.close()
    expect(await waiting).toMatchObject({ code: 'CLOSED' })
    expect(await failure(second)).toMatchObject({ code: 'CLOSED' })
  })

  it('logs in, and chooses the database, as a URL or options say', async () => {
    await command(server, 'ACL', 'SETUSER', 'app', 'on', '>p@:/%s', '~*', '+eval', '+set', '+select')
    const url = `redis://app:${encodeURIComponent('p@:/%s')}@${server.host}:${server.port}/3`
    const { host, port } = server
    for (const given of [url, { host, port, username: 'app', password: 'p@:/%s', db: 3 }]) {
      const connection = new OwnConnection(given)
      await connection.eval(WRITE, [K], [K])
      connection.close()
    }
    expect(await command(server, 'INFO', 'keyspace')).toContain('db3:keys=1')
    const wrong = new OwnConnection({ host: server.host, port: server.port, username: 'app', password: 'no' })
    expect(storeFailure(await failure(wrong))).toBe('forbidden')
    wrong.close()
  })

  it('sends nothing twice', async () => {
    const proxy = await startProxy(server)
    const connection = new OwnConnection({ host: proxy.host, port: proxy.port })
    await connection.eval(COUNT, [K], [K])
    proxy.cutOnReply()
    await expect(connection.eval(COUNT, [K], [K])).rejects.toThrow('max retries')
    await recovery(connection)
    expect(await command(server, 'GET', 'k')).toBe('2')
    connection.close()
    await proxy.close()
  })

  it.each([
    ['http://user:secret@h', 'a Redis URL must begin with redis:// or rediss://, got http:'],
    ['h:6379:secret', 'a Redis URL must begin with redis:// or rediss://, got h:'],
    ['', 'a Redis URL must begin with redis:// or rediss://, got an invalid URL'],
    ['redis://h/one', 'the path of a Redis URL must be the number of a database'],
    ['redis://user:secret%@h', 'the user and the password of a Redis URL must be percent-encoded'],
    [{ cluster: [] }, 'cluster must be a list of { host, port }, at least one, got an array of 0'],
    [{ sentinels: [{ host: 'h' }], name: 'm' }, 'sentinels must be a list of { host, port }, at least one'],
    [{ sentinels: [{ host: 'h', port: 1 }] }, 'sentinels and name belong together'],
  ])('refuses %p', (options, message) => {
    expect(() => new OwnConnection(options)).toThrow(PolicyError)
    expect(() => new OwnConnection(options)).toThrow(message)
  })

  it.each([
    'redis://user:12/secret@h',
    'redis://user:secret%@h',
    'redis://user:/secret@h',
    'redis://user:1?secret@h',
    'redis://user:1?family=4&secret@h',
  ])('shows nothing of the password in %s', (url) => {
    expect(() => new OwnConnection(url)).toThrow(PolicyError)
    expect(() => new OwnConnection(url)).not.toThrow(/secret/)
  })
})

describe.each([
  ['ioredis', (options: Endpoint) => openIoredis(ioredis as never, options)],
  ['iovalkey', (options: Endpoint) => openIoredis(iovalkey as never, options)],
  ['redis', (options: Endpoint) => openNodeRedis(nodeRedis as never, options)],
])('a connection made with the package %s', (_name, open) => {
  it('sends nothing twice, and decides again after whatever fault', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const connection = open({ host: proxy.host, port: proxy.port })
    await connection.eval(COUNT, [K], [K])
    await until('it to say that it is ready', () => connection.isReady())
    proxy.cutOnReply()
    await failure(connection, COUNT)
    await recovery(connection)
    expect(await command(server, 'GET', 'k')).toBe('2')
    await proxy.refuse()
    await pause(500)
    await proxy.heal()
    await recovery(connection)
    server.pause()
    expect(storeFailure(await failure(connection))).toBe('unavailable')
    server.resume()
    await recovery(connection)
    connection.close()
    await proxy.close()
    await server.stop()
  })

  it('takes the options that are not the address from a URL or beside it', async () => {
    const server = await startRedis()
    const url = `redis://${server.host}:${server.port}/2`
    const others = { connectTimeout: '2s', keepAlive: '10s', family: 4 }
    for (const given of [
      { url, connectionName: 'limits', ...others },
      `${url}?connectionName=limits&connectTimeout=2s&keepAlive=10000&family=4`,
    ]) {
      const connection = open(endpointOf(given))
      await connection.eval(ECHO, [K], [K])
      expect(await command(server, 'CLIENT', 'LIST')).toMatch(/ name=limits .* db=2 /)
      connection.close()
    }
    await server.stop()
  })

  // node-redis finishes connecting after it was ended, and then kept a process alive for ever (Cluster) or a second.
  it('leaves no connection behind when it is ended while it connects', async () => {
    const cluster = await startCluster({ masters: 1 })
    const { host, port } = cluster.masters[0]!
    for (const options of [{ host, port }, { cluster: [{ host, port }] }]) {
      for (const ms of [0, 1, 2, 4, 8, 16, 32]) {
        const connection = open(options)
        await pause(ms)
        connection.close()
      }
    }
    const others = async () => (await command(cluster.masters[0]!, 'CLIENT', 'LIST')).split('\n').length - 2
    await until('the connections to be gone', async () => (await others()) === 0)
    await cluster.stop()
  })

  it('stays open for seconds without a call', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const connection = open({ host: proxy.host, port: proxy.port })
    await connection.eval(ECHO, [K], [K])
    await pause(1500)
    await connection.eval(ECHO, [K], [K])
    expect(proxy.counts.connections).toBe(1)
    connection.close()
    await proxy.close()
    await server.stop()
  })
})

describe('a connection of its own by Sentinel', () => {
  it('follows the master when it dies and when roles change', async () => {
    const setup = await startSentinel({ sentinels: 3 })
    const sentinels = setup.sentinels.map(({ host, port }) => ({ host, port }))
    const connection = new OwnConnection({ sentinels, name: setup.masterName })
    await connection.eval(WRITE, [K], [K])
    await setup.failover('planned')
    await recovery(connection, WRITE)
    await setup.failover('death').catch(() => {})
    await recovery(connection, WRITE)
    expect(await command(setup.master, 'GET', 'k')).toBe('k')
    connection.close()
    await setup.stop()
  })
})

describe('a connection of its own to a Cluster', () => {
  it('serves after a replica took over, and after a node came back', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 1 })
    const connection = new OwnConnection({
      cluster: cluster.masters.map(({ host, port }) => ({ host, port })),
    })
    const keys = Array.from({ length: 60 }, (_, i) => Buffer.from(`key-${i}`))
    const failures = async () => {
      const results = await Promise.allSettled(keys.map((key) => connection.eval(WRITE, [key], [key])))
      return results.filter(({ status }) => status === 'rejected').length
    }
    expect(await failures()).toBe(0)
    await cluster.masters[0]!.kill()
    await pause(200)
    const lost = await failures()
    expect(lost).toBeGreaterThan(5)
    expect(lost).toBeLessThan(40)
    await until('the replica to take over', async () => (await cluster.ownerOf(0)) === cluster.replicas[0])
    await cluster.ready()
    await until('every key to be served', async () => (await failures()) === 0)
    connection.close()
    await cluster.stop()
  })
})

function failure(connection: RedisConnection, script = ECHO): Promise<unknown> {
  return connection.eval(script, [K], [K]).then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** Makes a call every 10 ms until one is answered. How long a connection waits before it tries again: back-off.test.ts. */
async function recovery(connection: RedisConnection, script = ECHO): Promise<void> {
  let answered = false
  for (let calls = 0; !answered; calls++) {
    if (calls > 2000) throw new Error('2000 calls without an answer')
    connection.eval(script, [K], [K]).then(
      () => (answered = true),
      () => {},
    )
    await pause(10)
  }
}

it('a client of node-redis that cannot be ended twice, as one of version 5, is ended while it connects', async () => {
  let ends = 0
  const createClient = (options: object) => {
    const client = nodeRedis.createClient(options)
    const destroy = client.destroy.bind(client)
    client.destroy = () => {
      if (++ends > 1) throw new Error('The client is closed')
      destroy()
    }
    return client
  }
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const { close, first } = openNodeRedis({ ...nodeRedis, createClient } as never, { host: '127.0.0.1', port })
  await once(silent, 'connection')
  close()
  await expect(first).rejects.toThrow('closed')
  await until('it to be ended again', () => ends > 1)
  silent.close()
})
