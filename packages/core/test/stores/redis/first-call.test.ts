import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient } from 'redis'
import { freePort, info, type RedisServer, startRedis } from '@sluice/harness/redis'
import { createLimiter, createSemaphore, gcra } from '../../../src/index.js'
import { type RedisClient, redisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(30_000)

const policies = [gcra({ limit: 100, window: '1h' })]

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const urlOf = ({ host, port }: { host: string; port: number }) => `redis://${host}:${port}`

/** A store of its own connection, whose first call is made at once, and what came of it after how long. */
async function firstCall(url: string, options: RedisStoreOptions = {}) {
  const store = redisStore(url, options)
  const limiter = createLimiter({ name: 'first', policies, store, deadline: '50ms' })
  const began = performance.now()
  const decisions = await Promise.all([limiter.consume('k'), limiter.consume('k')])
  const ms = performance.now() - began
  await limiter.close()
  await store.close()
  return { degraded: decisions.map(({ degraded }) => degraded), ms }
}

describe('the first calls of a process', () => {
  it.each([{}, { lazy: true }])('are decided by Redis, with %j', async (options) => {
    expect((await firstCall(urlOf(server), options)).degraded).toEqual([undefined, undefined])
  })

  it('are decided by Redis for a semaphore too', async () => {
    const store = redisStore(urlOf(server))
    const semaphore = createSemaphore({ name: 'first', limit: 1, store, deadline: '50ms' })
    await using permit = await semaphore.acquire()
    expect(permit.allowed).toBe(true)
    await semaphore.close()
    await store.close()
  })

  it('are decided by the failure mode at once if the first connection fails', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const { degraded } = await firstCall(`redis://127.0.0.1:${await freePort()}`, { startTimeout: '1m' })
    expect(degraded).toEqual(['unavailable', 'unavailable'])
  })

  describe('to a server that never finishes to connect', () => {
    let silent: Server
    let url: string
    const sockets: Socket[] = []
    beforeAll(async () => {
      silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
      await new Promise((resolve) => silent.once('listening', resolve))
      url = `rediss://127.0.0.1:${(silent.address() as { port: number }).port}`
    })
    afterAll(() => (silent.close(), sockets.forEach((socket) => socket.destroy())))

    it('wait for startTimeout and their deadline', async () => {
      expectWarnings(['STORE_DEGRADED'])
      const { degraded, ms } = await firstCall(`${url}?connectTimeout=20000`, { startTimeout: '300ms' })
      expect(degraded).toEqual(['unavailable', 'unavailable'])
      expect(ms).toBeGreaterThanOrEqual(340)
    })

    it('are rejected if the store is closed before it has connected', async () => {
      const store = redisStore(url)
      const limiter = createLimiter({ name: 'first', policies, store, onStoreError: 'throw' })
      const call = limiter.consume('k').catch((error: unknown) => error)
      await store.close()
      expect(await call).toMatchObject({ code: 'CLOSED' })
      await limiter.close()
    })
  })
})

/** A port of Redis that reads nothing until it is opened. */
async function gate(): Promise<{ readonly port: number; open(): void; close(): void }> {
  let open = (): void => {}
  const isOpen = new Promise<void>((resolve) => (open = resolve))
  const sockets: Socket[] = []
  const front = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    void isOpen.then(() => {
      const back = connect(server.port, server.host).on('error', () => {})
      sockets.push(back)
      socket.pipe(back).pipe(socket)
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => front.once('listening', resolve))
  return {
    port: (front.address() as { port: number }).port,
    open,
    close: () => (front.close(), sockets.forEach((socket) => socket.destroy())),
  }
}

const connecting: Record<string, (port: number) => { client: RedisClient; end(): void }> = {
  ioredis: (port) => ended(new Redis({ port, maxRetriesPerRequest: 0, disconnectTimeout: 20 })),
  'a lazy ioredis': (port) => ended(new Redis({ port, maxRetriesPerRequest: 0, lazyConnect: true })),
  'an ioredis that queues nothing': (port) =>
    ended(new Redis({ port, maxRetriesPerRequest: 0, enableOfflineQueue: false })),
  iovalkey: (port) => ended(new Iovalkey({ port, maxRetriesPerRequest: 0 })),
  'node-redis': (port) => {
    const client = createClient({ socket: { port } })
    void client.connect()
    return { client, end: () => client.destroy() }
  },
}

function ended<Client extends { disconnect(): void }>(client: Client) {
  return { client, end: () => client.disconnect() }
}

describe('a client that is handed in while it connects', () => {
  it.each(Object.entries(connecting))('%s decides the first calls once it is connected', async (_, make) => {
    const { port, open, close } = await gate()
    const { client, end } = make(port)
    const store = redisStore(client, { startTimeout: '20s' })
    const limiter = createLimiter({ name: 'first', policies, store, deadline: '500ms' })
    const calls = [limiter.consume('k'), limiter.consume('k')]
    await pause(700)
    open()
    expect((await Promise.all(calls)).map(({ degraded }) => degraded)).toEqual([undefined, undefined])
    await limiter.close()
    end()
    close()
  })

  it('is waited for no longer than until the store is closed', async () => {
    const { port, close } = await gate()
    const { client, end } = connecting['ioredis']!(port)
    const store = redisStore(client, { startTimeout: '1m' })
    const limiter = createLimiter({ name: 'first', policies, store, onStoreError: 'throw' })
    const call = limiter.consume('k').catch((error: unknown) => error)
    await store.close()
    expect(await call).toMatchObject({ code: 'CLOSED' })
    await limiter.close()
    end()
    close()
  })

  it('is waited for no longer than startTimeout, and not at all once it has failed', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const { port, close } = await gate()
    for (const [to, startTimeout] of [
      [port, '100ms'],
      [await freePort(), '1m'],
    ] as const) {
      const { client, end } = connecting['ioredis']!(to)
      const limiter = createLimiter({ name: 'first', policies, store: redisStore(client, { startTimeout }) })
      expect((await limiter.consume('k')).degraded).toBe('unavailable')
      await limiter.close()
      end()
    }
    close()
  })
})

describe('a lazy store', () => {
  it('connects with the first call', async () => {
    const connections = async () => Number((await info(server, 'clients'))['connected_clients'])
    const before = await connections()
    const store = redisStore(urlOf(server), { lazy: true })
    const limiter = createLimiter({ name: 'lazy', policies, store })
    await new Promise((resolve) => setImmediate(resolve))
    expect(await connections()).toBe(before)
    await limiter.consume('k')
    expect(await connections()).toBe(before + 1)
    await store.close()
  })
})

describe('ready', () => {
  it('resolves once Redis answers, also over a client that was handed in', async () => {
    const client = new Redis(server.port, server.host, { maxRetriesPerRequest: 0 })
    for (const store of [
      redisStore(urlOf(server)),
      redisStore(urlOf(server), { lazy: true }),
      redisStore(client),
    ]) {
      await expect(store.ready()).resolves.toBeUndefined()
      await store.close()
    }
    client.disconnect()
  })

  it('rejects with the first failure, or when the store is closed', async () => {
    const store = redisStore(`redis://127.0.0.1:${await freePort()}`)
    await expect(store.ready()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await store.close()
    const lazy = redisStore(urlOf(server), { lazy: true })
    await lazy.close()
    await expect(lazy.ready()).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

it.each([
  { lazy: 1 },
  { startTimeout: '2m' },
  { startTimeout: -1 },
  { maxPending: 999 },
  { maxPending: 1.5 },
])('refuses %j', (options) => {
  expect(() => redisStore('redis://127.0.0.1:6379', options as never)).toThrow(
    expect.objectContaining({ name: 'PolicyError' }),
  )
})
