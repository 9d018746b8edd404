import { createLimiter, gcra, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, pause, startCluster, startProxy, startRedis, startSentinel } from '@sluice/harness/redis'
import { type WatchedPolicies, watchPolicies } from '@sluice/policies/node'
import { type Outage, sitOut } from '../outage.js'
import type { Watch } from '../row.js'
import { row as stall } from '../rows/row-08-stall.js'
import { row as death } from '../rows/row-09-death.js'
import { row as partition } from '../rows/row-13-partition.js'
import { empty, fill } from '../rows/row-15-out-of-memory.js'
import { row as brokenState } from '../rows/row-16-broken-state.js'

type WatchFile = (watched: WatchedPolicies) => void

/** Something that happens to limiters, and exactly the alerts that docs/runbook.md names for it. */
export interface Scenario {
  readonly title: string
  readonly alerts: readonly string[]
  run(watch: Watch, watchFile: WatchFile): unknown
}

const OUTAGE = ['SluiceDecidedWithoutStore', 'SluiceStoreDown']

export const scenarios: readonly Scenario[] = [
  {
    title: 'nothing',
    alerts: [],
    run: healthy,
  },
  { title: 'row 8, stall', alerts: OUTAGE, run: (watch) => stall.run(1, watch) },
  { title: 'row 9, death', alerts: OUTAGE, run: (watch) => death.run(1, watch) },
  { title: 'row 12, failover by Sentinel', alerts: OUTAGE, run: failover },
  { title: 'row 13, partition', alerts: OUTAGE, run: (watch) => partition.run(1, watch) },
  {
    title: 'row 14, one of three masters dead',
    alerts: ['SluiceDecidedWithoutStore'],
    run: deadMaster,
  },
  { title: 'row 15, out of memory: all calls refused', alerts: OUTAGE, run: outOfMemory },
  {
    title: 'row 17, a permission that some calls need',
    alerts: ['SluiceDecidedWithoutStore'],
    run: forbidden,
  },
  {
    title: 'row 16, broken state',
    alerts: ['SluiceStateDiscarded'],
    run: (watch) => brokenState.run(1, watch),
  },
  { title: 'row 18, key flood', alerts: ['SluiceKeysEvicted'], run: flood },
  { title: 'a store that is slow', alerts: ['SluiceStoreSlow'], run: slow },
  {
    title: 'a policy file that is replaced again and again, once by a broken one',
    alerts: [],
    run: (_, watchFile) => following(watchFile, (i) => fileOf(i === 20 ? 0.5 : i)),
  },
  {
    title: 'a policy file that is broken and stays so',
    alerts: ['SluicePoliciesOld'],
    run: (_, watchFile) => following(watchFile, (i) => fileOf(i < 10 ? 1 : 0.5)),
  },
  {
    title: 'a policy file that is gone',
    alerts: ['SluicePoliciesOld'],
    run: (_, watchFile) =>
      following(watchFile, (i) => (i < 10 ? fileOf(1) : Promise.reject(new Error('gone')))),
  },
]

const LASTS_MS = 2000

/** The load of rows 8, 9 and 13 on a store through something else. Closes the store. */
async function through(outage: Omit<Outage, 'lastsMs'>, watch: Watch, store: Store): Promise<void> {
  await sitOut(store, { ...outage, lastsMs: LASTS_MS }, watch)
  await store.close()
}

/** Calls a Redis that is well, during which no alert may fire. */
async function healthy(watch: Watch): Promise<void> {
  const { host, port, stop } = await startRedis()
  await through({ title: 'nothing', begin() {}, end() {} }, watch, redisStore({ host, port }))
  await stop()
}

/** Kills a master under Sentinel, and lets calls go on through that. */
async function failover(watch: Watch): Promise<void> {
  const setup = await startSentinel({ sentinels: 3 })
  const sentinels = setup.sentinels.map(({ host, port }) => ({ host, port }))
  const store = redisStore({ sentinels, name: setup.masterName })
  await through({ title: 'failover', begin: () => setup.failover('death'), end() {} }, watch, store)
  await setup.stop()
}

/** Its third of the callers is decided without Redis. */
async function deadMaster(watch: Watch): Promise<void> {
  const cluster = await startCluster({ masters: 3 })
  const [dead] = cluster.masters
  const store = redisStore({ cluster: cluster.masters.map(({ host, port }) => ({ host, port })) })
  await through(
    { title: 'a dead master', begin: () => dead!.kill(), end: () => dead!.restart() },
    watch,
    store,
  )
  await cluster.stop()
}

/** Fills a Redis until it refuses writes, and lets calls go on through that. */
async function outOfMemory(watch: Watch): Promise<void> {
  const server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
  const { host, port } = server
  const outage = { title: 'full', begin: () => fill(server), end: () => empty(server) }
  await through(outage, watch, redisStore({ host, port }))
  await server.stop()
}

/** The user of Redis may not touch the keys of every fifth caller. */
async function forbidden(watch: Watch): Promise<void> {
  const server = await startRedis()
  const { host, port } = server
  const grant = (...rules: string[]) => command(server, 'ACL', 'SETUSER', 'default', 'resetkeys', ...rules)
  const outage = { title: 'forbidden', begin: () => grant('~*[0-7]'), end: () => grant('~*') }
  await through(outage, watch, redisStore({ host, port }))
  await server.stop()
}

/** New keys without end. */
async function flood(watch: Watch): Promise<void> {
  const policies = [gcra({ limit: 100, window: '1h' })]
  const limiter = createLimiter({ name: 'flood', policies, store: memoryStore({ maxKeys: 1000 }) })
  limiter.on('warning', () => {})
  watch(limiter)
  const until = performance.now() + LASTS_MS
  for (let i = 0; performance.now() < until; i++) {
    await limiter.consume(`new:${i}`)
    if (i % 100 === 0) await pause(1)
  }
  await limiter.close()
}

/** Within the deadline of 50 ms. */
async function slow(watch: Watch): Promise<void> {
  const server = await startRedis()
  const proxy = await startProxy(server)
  const { host, port } = proxy
  const outage = { title: 'slow', begin: () => proxy.latency(SLOW_MS, 'to-client'), end: () => proxy.heal() }
  await through(outage, watch, redisStore({ host, port }))
  await proxy.close()
  await server.stop()
}

const SLOW_MS = 30

/** Watches what `at` returns for the number of a moment, of which there are 40. */
async function following(
  watchFile: WatchFile,
  at: (moment: number) => string | Promise<string>,
): Promise<void> {
  const moments = 40
  let moment = 0
  const watched = watchPolicies(async () => at(moment), { every: '20ms', onError: () => {} })
  await watched.ready()
  watchFile(watched)
  for (; moment < moments; moment++) await pause(LASTS_MS / moments)
  watched.close()
}

/** A policy file of a limit; one that is no whole number is refused. */
const fileOf = (limit: number): string =>
  JSON.stringify({ limiters: { api: { policies: [{ algorithm: 'gcra', limit, window: '1h' }] } } })
