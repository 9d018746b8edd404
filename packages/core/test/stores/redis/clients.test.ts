import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { inspect } from 'node:util'
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { Cluster as IovalkeyCluster } from 'iovalkey'
import { createClient } from 'redis'
import {
  type Cluster,
  command,
  pipeline,
  type RedisServer,
  startCluster,
  startRedis,
} from '@sluice/harness/redis'
import { PolicyError } from '../../../src/values/errors.js'
import type { RedisConnection } from '../../../src/stores/redis/redis-connection.js'
import { connectionOver } from '../../../src/stores/redis/clients/detect.js'
import { isRefusedBy, storeError, storeFailure } from '../../../src/stores/redis/clients/failure.js'
import { type Link, ofCluster, ofOneServer } from './client-kinds.js'

jest.setTimeout(60_000)

const ECHO = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1]) .. KEYS[1]"
const COUNT = "return tostring(redis.call('INCR', KEYS[1]))"
const EVERY_BYTE = Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))

let server: RedisServer
let cluster: Cluster
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
})
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

describe.each(Object.entries({ ...ofOneServer, ...ofCluster }))('%s', (kind, open) => {
  let link: Link
  let connection: RedisConnection
  beforeAll(async () => {
    link = await open(kind in ofCluster ? cluster.masters[0]! : server)
    connection = link.connection
  })
  afterAll(() => link.end())

  it('passes every byte unchanged, in keys, arguments and replies', async () => {
    const whole = Buffer.concat([Buffer.of(9), EVERY_BYTE, Buffer.of(9)])
    const key = whole.subarray(1, 257)
    const expected = Buffer.concat([EVERY_BYTE, EVERY_BYTE])
    expect(asBuffer(await connection.eval(ECHO, [key], [EVERY_BYTE]))).toEqual(expected)
    expect(asBuffer(await connection.evalsha(shaOf(ECHO), [key], [EVERY_BYTE]))).toEqual(expected)
  })

  it('reports a script that is not loaded, and EVAL then loads it', async () => {
    const script = `return ARGV[1] -- ${kind}`
    const key = Buffer.from('k')
    const refusal = await connection.evalsha(shaOf(script), [key], [key]).catch((error: unknown) => error)
    expect(isRefusedBy('NOSCRIPT', refusal)).toBe(true)
    expect(asBuffer(await connection.eval(script, [key], [Buffer.from('loaded')]))).toEqual(
      Buffer.from('loaded'),
    )
    expect(asBuffer(await connection.evalsha(shaOf(script), [key], [key]))).toEqual(key)
  })

  it('rejects with the reason for which the script was refused', async () => {
    const refusal = await connection
      .eval("return redis.error_reply('OOM none left')", [key('k')], [key('')])
      .catch(pass)
    expect(storeFailure(refusal)).toBe('oom')
  })
})

describe.each(Object.entries(ofOneServer))('%s', (kind, open) => {
  it('takes several keys at once, as texts and as bytes, and gives a reply for each', async () => {
    const { connection, end } = await open(server)
    const script = `local replies = {} for i = 1, #KEYS do replies[i] = KEYS[i] .. ARGV[i] end return replies -- ${kind}`
    const keys = ['user:1', 'user:\u00e9', EVERY_BYTE]
    const args = [EVERY_BYTE, key('2'), key('3')]
    const expected = keys.map((each, i) => Buffer.concat([Buffer.from(each as string), args[i]!]))
    expect(await connection.eval(script, keys, args)).toEqual(expected)
    expect(await connection.evalsha(shaOf(script), keys, args)).toEqual(expected)
    await end()
  })
})

describe.each(Object.entries(ofCluster))('%s', (_kind, open) => {
  it('reaches the node that owns each of many keys, among them slots that moved', async () => {
    const { connection, end } = await open(cluster.masters[0]!)
    await Promise.all(cluster.masters.map((node) => command(node, 'FLUSHALL')))
    const keys = Array.from({ length: 300 }, (_, i) => Buffer.from(`user:${i}:\u00e9`))
    const countAll = () => Promise.all(keys.map((each) => connection.eval(COUNT, [each], [each])))
    await countAll()
    const slot = await cluster.slotOf('user:7:\u00e9')
    const from = await cluster.ownerOf(slot)
    await cluster.moveSlot(
      slot,
      from,
      cluster.masters.find((node) => node !== from)!,
    )
    expect((await countAll()).map(String)).toEqual(keys.map(() => '2'))
    const sizes = await Promise.all(cluster.masters.map((node) => command<number>(node, 'DBSIZE')))
    expect(sizes.reduce((sum, size) => sum + size)).toBe(300)
    expect(Math.min(...sizes)).toBeGreaterThan(50)
    await end()
  })
})

describe('a client that was handed in', () => {
  it('is recognised without importing its package, and nothing else is', () => {
    const redis = new Redis({ lazyConnect: true })
    expect(connectionOver(redis)).toBeDefined()
    expect(connectionOver(createClient())).toBeDefined()
    for (const other of [undefined, null, 'redis://h', {}, new EventEmitter(), { get: () => null }, Redis]) {
      expect(connectionOver(other)).toBeUndefined()
    }
    redis.disconnect()
  })

  it('has one listener for errors however many connections share it, until the last is closed', () => {
    const redis = new Redis({ lazyConnect: true })
    const connections = Array.from({ length: 20 }, () => connectionOver(redis)!)
    expect(redis.listenerCount('error')).toBe(1)
    for (const connection of connections) connection.close()
    connections[0]!.close()
    expect(redis.listenerCount('error')).toBe(0)
    redis.disconnect()
  })

  it('is not connected because of what the server refused, rather than of the closed connection, until it is ready', () => {
    const redis = new Redis({ lazyConnect: true })
    const connection = connectionOver(redis)!
    const [reset, refused] = [new Error('read ECONNRESET'), new Error('WRONGPASS invalid')]
    const troubles = [reset, refused, reset].map(
      (error) => (redis.emit('error', error), connection.trouble()),
    )
    expect(troubles).toEqual([reset, refused, refused])
    redis.emit('ready')
    redis.emit('error', reset)
    expect(connection.trouble()).toBe(reset)
    connection.close()
    redis.disconnect()
  })

  it('stays open when a connection that uses it is closed', async () => {
    const redis = new Redis(server.port)
    connectionOver(redis)!.close()
    expect(await redis.ping()).toBe('PONG')
    redis.disconnect()
  })

  it('keeps its own key prefix', async () => {
    const redis = new Redis({ port: server.port, keyPrefix: 'mine:' })
    const node = createClient({ socket: { port: server.port }, keyPrefix: 'mine:' })
    await node.connect()
    for (const client of [redis, node])
      await connectionOver(client)!.eval(COUNT, [key('prefixed')], [key('')])
    expect(await command(server, 'GET', 'mine:prefixed')).toBe('2')
    redis.disconnect()
    node.destroy()
  })
})

describe('storeFailure', () => {
  it.each([
    ["OOM command not allowed when used memory > 'maxmemory'.", 'oom'],
    ["READONLY You can't write against a read only replica.", 'readonly'],
    ['LOADING Redis is loading the dataset in memory', 'loading'],
    ['BUSY Redis is busy running a script.', 'busy'],
    ['MASTERDOWN Link with MASTER is down', 'unavailable'],
    ['CLUSTERDOWN Hash slot not served', 'unavailable'],
    ['NOAUTH Authentication required.', 'forbidden'],
    ['ERR Protocol error: unauthenticated bulk length', 'forbidden'],
    ["NOPERM User u has no permissions to run the 'get' command", 'forbidden'],
    ['WRONGPASS invalid username-password pair', 'forbidden'],
    ['ERR user_script:1: Script attempted to access nonexistent global variable', 'error'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'error'],
    ['constructor is no code', 'unavailable'],
    [
      'ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -OOM command not allowed',
      'oom',
    ],
    ['connect ECONNREFUSED 127.0.0.1:6379', 'unavailable'],
    ['Connection is closed.', 'unavailable'],
    ['Command timed out', 'timeout'],
    ['', 'unavailable'],
  ])('sorts %p as %s', (message, failure) => {
    expect(storeFailure(new Error(message))).toBe(failure)
  })

  it('keeps no command, and no arguments that a server shows, as they may hold a password', () => {
    const refused = Object.assign(new Error('WRONGPASS invalid'), {
      command: { name: 'auth', args: ['secret'] },
    })
    const unknown = new Error("ERR unknown command 'AUTH', with args beginning with: 'secret' ")
    const ofNode = Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: refused })
    const errors = [refused, unknown, ofNode].map(storeError)
    expect(errors.map(({ message }) => message)).toEqual([
      'Redis did not decide: WRONGPASS invalid',
      "Redis did not decide: ERR unknown command 'AUTH'",
      'Redis did not decide: WRONGPASS invalid',
    ])
    for (const error of errors) expect(inspect(error)).not.toContain('secret')
  })

  it('names the code of an error without a message', () => {
    const noAddress = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })
    expect(storeError(noAddress).message).toBe('Redis did not decide: ECONNREFUSED')
  })

  it('classifies a bug as an error and not as an outage', () => {
    expect(storeFailure(new TypeError('x is not a function'))).toBe('error')
    expect(storeFailure(new PolicyError('INVALID_OPTION', 'no'))).toBe('error')
  })

  it('classifies the errors of real servers and clients', async () => {
    const small = await startRedis({ args: ['--maxmemory', '1mb'] })
    await pipeline(small, [['CONFIG', 'SET', 'maxmemory', 1]])
    for (const open of [ofOneServer.ioredis!, ofOneServer['node-redis']!]) {
      const { connection, end } = await open(small)
      const count = () => connection.eval(COUNT, [key('k')], [key('')]).catch((error) => storeFailure(error))
      expect(await count()).toBe('oom')
      await command(small, 'CONFIG', 'SET', 'maxmemory', 0)
      await command(small, 'REPLICAOF', server.host, server.port)
      await command(small, 'CONFIG', 'SET', 'replica-serve-stale-data', 'yes')
      expect(await count()).toBe('readonly')
      await command(small, 'REPLICAOF', 'NO', 'ONE')
      await command(small, 'CONFIG', 'SET', 'maxmemory', 1)
      await end()
      expect(await count()).toBe('unavailable')
    }
    await small.stop()
  })
})

function key(text: string): Buffer {
  return Buffer.from(text)
}

function pass(error: unknown): unknown {
  return error
}

function asBuffer(bytes: unknown): Buffer {
  expect(Buffer.isBuffer(bytes)).toBe(true)
  return bytes as Buffer
}

function shaOf(script: string): string {
  return createHash('sha1').update(script).digest('hex')
}

it.each([
  ['ioredis', IoredisCluster],
  ['iovalkey', IovalkeyCluster],
])('a Cluster of %s writes what is sent together to each node in one piece', async (_, Cluster) => {
  const client = new Cluster([{ host: cluster.masters[0]!.host, port: cluster.masters[0]!.port }])
  const connection = connectionOver(client)!
  await new Promise<void>((resolve) => client.once('ready', () => resolve()))
  await Promise.all(client.nodes('master').map((node) => node.ping()))
  const corked = () => client.nodes('master').map(({ stream }) => stream.writableCorked)
  let during: number[] = []
  let sent: Promise<unknown>[] = []
  connection.inOneWrite(() => {
    sent = Array.from({ length: 30 }, (_, i) => connection.eval(ECHO, [`user:${i}`], [key('sent')]))
    during = corked()
  })
  expect(during).toEqual([1, 1, 1])
  expect(corked()).toEqual([0, 0, 0])
  const replies = await Promise.all(sent)
  expect(replies.map(String)).toEqual(replies.map((_, i) => `sentuser:${i}`))
  connection.close()
  client.disconnect()
})
