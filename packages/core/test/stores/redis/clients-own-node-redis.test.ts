import {
  command,
  type Proxy,
  type RedisServer,
  startProxy,
  startRedis,
  startReplica,
  until,
} from '@sluice/harness/redis'
import type { StoreError } from '../../../src/values/errors.js'
import { storeError } from '../../../src/stores/redis/clients/failure.js'
import { OwnConnection } from '../../../src/stores/redis/connection/own.js'

jest.mock('ioredis', () => missing('ioredis'))
jest.mock('iovalkey', () => missing('iovalkey'))

const COUNT = "return tostring(redis.call('INCR', KEYS[1]))"
const K = Buffer.from('k')

let server: RedisServer
let proxy: Proxy
let connection: OwnConnection
beforeEach(async () => {
  server = await startRedis()
  proxy = await startProxy(server)
  connection = new OwnConnection({ host: proxy.host, port: proxy.port })
})
afterEach(async () => {
  connection.close()
  await proxy.close()
  await server.stop()
})

// node-redis writes all that is queued together with its greeting, before it says that it is ready.
it('a connection of its own over node-redis reports a call as sent that it wrote while it reconnected', async () => {
  await connection.eval(COUNT, [K], [K])
  await proxy.refuse()
  await until('the connection to be given up', () => !connection.isReady())
  const outcome = connection.eval(COUNT, [K], [K]).catch((error: unknown) => storeError(error))
  const healed = proxy.heal()
  proxy.cutOnReply()
  await healed
  const { failure, sent } = (await outcome) as StoreError
  expect({ failure, sent }).toEqual({ failure: 'unavailable', sent: true })
  expect(await command(server, 'GET', 'k')).toBe('2')
})

// Its address leads to another server then, and connections that are open to the old one, which refuses all that writes.
it('a connection of its own over node-redis connects anew to a server that is no replica', async () => {
  const next = await startReplica(server)
  try {
    await connection.eval(COUNT, [K], [K])
    await until('the replica to have it', async () => (await command(next, 'GET', 'k')) === '1')
    await next.promote()
    await command(server, 'REPLICAOF', next.host, String(next.port))
    proxy.pointTo(next)
    const replies = await Promise.allSettled([1, 2, 3].map(() => connection.eval(COUNT, [K], [K])))
    expect(replies.map(({ status }) => status)).toContain('fulfilled')
    expect(String(await connection.eval(COUNT, [K], [K]))).toBe(await command(next, 'GET', 'k'))
  } finally {
    await next.stop()
  }
})

function missing(name: string): never {
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' })
}
