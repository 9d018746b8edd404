import { createLimiter, gcra, type Limiter, type Store } from '@sluice/core'
import type { RedisClient } from '@sluice/core/redis'
import {
  command,
  type Proxy,
  type RedisServer,
  type Replica,
  startProxy,
  startRedis,
  startReplica,
  until,
} from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/*
 * Each way of docs/operations.md, "Failover", is run as it stands there, against a proxy that is pointed from a master to its
 * replica, while connections that are open stay with the old one.
 */

const PAGE = readFileSync(resolve(__dirname, '../operations.md'), 'utf8')
const [, SECTION = ''] = /^## Failover$([^]*?)^## /m.exec(PAGE) ?? []
const [OF_IOREDIS = '', OF_NODE_REDIS = ''] = [...SECTION.matchAll(/^```ts\n([^]*?)^```/gm)].map(
  ([, code = '']) => code,
)
const STAYS = OF_IOREDIS.replace(', reconnectOnError }', ' }')

/** What a block declares. */
interface Made {
  readonly client: RedisClient & { disconnect?(): void; destroy?(): void }
  readonly store: Store
  readonly limiter?: Limiter
}

let folder: string
let master: RedisServer
let next: Replica
let proxy: Proxy
/** Ends the store and the client of a test, which would connect for ever otherwise. */
let end: () => Promise<void>
beforeAll(() => {
  folder = mkdtempSync(join(__dirname, '.failover-'))
})
beforeEach(async () => {
  // A pool may have a connection to the new master already, and a second passes before a store counts as usable again.
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  master = await startRedis()
  next = await startReplica(master)
  proxy = await startProxy(master)
})
afterEach(async () => {
  await end()
  await proxy.close()
  await Promise.all([master.stop(), next.stop()])
})
afterAll(() => rmSync(folder, { recursive: true }))

it.each([
  ['reconnectOnError of ioredis', OF_IOREDIS],
  ['reconnectOnError of iovalkey', OF_IOREDIS.replace("from 'ioredis'", "from 'iovalkey'")],
  ['a client of node-redis that is connected anew', OF_NODE_REDIS],
  ['a client of node-redis 5 that is connected anew', OF_NODE_REDIS.replace("from 'redis'", "from 'redis5'")],
  [
    'a pool of node-redis that is connected anew',
    OF_NODE_REDIS.replaceAll('createClient', 'createClientPool'),
  ],
])('%s follows the address', async (_, code) => {
  const consume = await opened(code)
  // The limiter of the page has a deadline of 50 ms, which a busy machine may miss.
  await until('a call to be decided by the master', async () => (await consume()) === undefined)
  await failOver()
  await until('all calls to be decided by the new master', () => areDecided(consume))
})

it('a client without it stays, until its connections are ended at the old master', async () => {
  const consume = await opened(STAYS)
  expect(await consume()).toBeUndefined()
  await failOver()
  for (let i = 0; i < 30; i++) expect(await consume()).toBe('readonly')
  await command(master, 'CLIENT', 'KILL', 'TYPE', 'normal')
  await until('calls to be decided by the new master', async () => (await consume()) === undefined)
})

/** Whether the store decides thirty calls in a row: a pool may have connections to both servers for a while. */
async function areDecided(consume: () => Promise<string | undefined>): Promise<boolean> {
  for (let i = 0; i < 30; i++) if ((await consume()) !== undefined) return false
  return true
}

async function failOver(): Promise<void> {
  await next.promote()
  await command(master, 'REPLICAOF', next.host, String(next.port))
  proxy.pointTo(next)
}

let files = 0

/** Runs a block. Returns what asks its limiter why a call was degraded. */
async function opened(code: string) {
  const file = join(folder, `${++files}.ts`)
  const exported = code
    .replaceAll('redis://localhost:6379', `redis://${proxy.host}:${proxy.port}`)
    .replace(/^const (client|store|limiter) /gm, 'export const $1 ')
  writeFileSync(file, exported)
  const { client, store, limiter } = (await import(file)) as Made
  const policies = [gcra({ limit: 1000, window: '1m' })]
  const asked = limiter ?? createLimiter({ name: 'api', policies, store, deadline: '5s' })
  end = async () => {
    await store.close()
    if (client.disconnect) client.disconnect()
    else client.destroy?.()
  }
  return async () => (await asked.consume('k')).degraded
}
