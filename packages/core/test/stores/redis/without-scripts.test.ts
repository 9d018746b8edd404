import { command, startRedis } from '@sluice/harness/redis'
import { Redis as Ioredis } from 'ioredis'
import { createClient } from 'redis'
import { createLimiter, createSemaphore, gcra } from '../../../src/index.js'
import { storeError } from '../../../src/stores/redis/clients/failure.js'
import { type RedisClient, type RedisStore, redisStore } from '../../../src/stores/redis/index.js'
import type { SluiceError } from '../../../src/values/errors.js'

/* A server that runs no scripts decides nothing. The process is warned once, with the cause. */

const CAUSE = /the server runs no Lua \(EVAL\): ERR /
const policies = [gcra({ limit: 10, window: '1h' })]

it.each<[string, (url: string) => Promise<RedisClient | string>]>([
  ['a connection of its own', async (url) => url],
  ['ioredis', async (url) => new Ioredis(url, { maxRetriesPerRequest: 0 })],
  [
    'node-redis',
    async (url) => {
      const client = createClient({ url })
      await client.connect()
      return client
    },
  ],
])('a server on which EVAL was renamed is named in one warning: %s', async (_, open) => {
  const server = await startRedis({ args: ['--rename-command', 'EVAL', ''] })
  const client = await open(`redis://${server.host}:${server.port}`)
  const store = redisStore(client)
  const warnings = await warningsOf(async () => {
    const limiters = ['a', 'b'].map((name) => createLimiter({ name, policies, store, deadline: '5s' }))
    for (const limiter of [...limiters, ...limiters])
      expect((await limiter.consume('k')).degraded).toBe('error')
    const semaphore = createSemaphore({ name: 's', limit: 1, store })
    const refused = semaphore.acquire('k', { maxWait: 0 })
    await expect(refused).rejects.toMatchObject({
      code: 'STORE_ERROR',
      message: expect.stringMatching(CAUSE),
    })
  })
  expect(warnings).toEqual([['STORE_DEGRADED', expect.stringMatching(CAUSE)]])
  await ended(store, client)
  await server.stop()
})

it('a user that may not run EVAL is named in one warning', async () => {
  const server = await startRedis()
  await command(server, 'ACL', 'SETUSER', 'default', '-eval')
  const store = redisStore(`redis://${server.host}:${server.port}`)
  const warnings = await warningsOf(async () => {
    const limiter = createLimiter({ name: 'a', policies, store, deadline: '5s' })
    for (let i = 0; i < 3; i++) expect((await limiter.consume('k')).degraded).toBe('forbidden')
  })
  expect(warnings).toEqual([['STORE_DEGRADED', expect.stringMatching(/forbidden.*NOPERM.*'eval'/)]])
  await store.close()
  await server.stop()
})

it.each([
  ["ERR Could not find scripting engine 'lua'", CAUSE],
  ["ERR unknown command 'EVAL', with args beginning with: 'a' 'secret'", CAUSE],
  ["ERR unknown command `evalsha`, with args beginning with: 'a'", CAUSE],
  ['ERR value is not an integer or out of range', /^Redis did not decide: ERR value/],
])('%s', (text, message) => {
  const error = storeError(new Error(text)) as SluiceError
  expect(error).toMatchObject({ code: 'STORE_ERROR', message: expect.stringMatching(message) })
  expect(error.message).not.toContain('secret')
})

/** A client for tests that speaks to no server, as ioredis-mock: the methods of ioredis without `sendCommand`. */
class RedisMock {
  readonly options = {}
  readonly host = 'localhost'
  evalBuffer() {}
  evalshaBuffer() {}
  on() {}
  off() {}
}

it('a client that speaks to no server is refused by its class', () => {
  expect(() => redisStore(new RedisMock() as unknown as RedisClient)).toThrow(
    /got an object of the class RedisMock$/,
  )
})

/** The warnings of the process while `act` runs. */
async function warningsOf(act: () => Promise<void>): Promise<readonly [code: string, text: string][]> {
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue()
  await act()
  const warnings = warn.mock.calls.map(
    ([text, options]) => [(options as { code: string }).code, String(text)] as [string, string],
  )
  warn.mockRestore()
  return warnings
}

async function ended(store: RedisStore, client: RedisClient | string): Promise<void> {
  await store.close()
  if (client instanceof Ioredis) client.disconnect()
  else if (typeof client === 'object') (client as { destroy?(): void }).destroy?.()
}
