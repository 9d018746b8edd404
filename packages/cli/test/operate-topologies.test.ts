import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, startCluster, startSentinel } from '@sluice/harness/redis'
import { Site } from '../src/acts/site.js'
import { openStore } from '../src/acts/open-store.js'

jest.setTimeout(60_000)

const policies = [slidingLog({ limit: 1, window: '1d' })]
const penalty = { after: 1, block: '1h' } as const
const keys = Array.from({ length: 30 }, (_, i) => `user:${i}`)

/** The keys that a Site finds blocked through a URL, after another process has blocked some of them by a penalty. */
async function blockedThrough(url: string, store: ReturnType<typeof redisStore>): Promise<string[]> {
  const limiter = createLimiter({ name: 'api', policies, penalty, store, deadline: '10s' })
  for (const key of keys) for (let i = 0; i < 2; i++) await limiter.consume(key)
  const site = new Site(await openStore(url, {}), [{ name: 'api', policies }])
  const found: string[] = []
  for await (const { key } of site.blocked(new Map())) found.push(key)
  const [own] = site.limitersOf(site.limits[0]!) as [Limiter]
  await own.unblock(keys[0]!)
  await own.reset(keys[1]!)
  expect((await limiter.peek(keys[1]!)).allowed).toBe(true)
  expect(await limiter.peek(keys[0]!)).toMatchObject({ reason: 'limit' })
  await site.close()
  await limiter.close()
  await store.close()
  return found.toSorted()
}

it('finds the keys of all masters of a Cluster, of which one node is named', async () => {
  const cluster = await startCluster({ masters: 3 })
  const { host, port } = cluster.masters[1]!
  const store = redisStore({ cluster: cluster.masters })
  expect(await blockedThrough(`redis://${host}:${port}`, store)).toEqual(keys.toSorted())
  const sizes = await Promise.all(cluster.masters.map((node) => command<number>(node, 'DBSIZE')))
  expect(sizes.every((size) => size > 0)).toBe(true)
  await cluster.stop()
})

it('finds the master by a Sentinel', async () => {
  const { sentinels, masterName, master, stop } = await startSentinel()
  const [{ host, port }] = sentinels as [(typeof sentinels)[0]]
  const store = redisStore({ host: master.host, port: master.port })
  expect(await blockedThrough(`redis://${host}:${port}?name=${masterName}`, store)).toEqual(keys.toSorted())
  const unknown = openStore(`redis://${host}:${port}?name=unknown`, {})
  await expect(unknown).rejects.toMatchObject({ name: 'StoreError' })
  await stop()
})
