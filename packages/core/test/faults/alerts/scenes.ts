import { redisStore } from '@sluice/core/redis'
import { command, startProxy, startRedis } from '@sluice/testing/redis'
import { type Outage, sitOut } from '../outage.js'
import type { Watch } from '../row.js'
import { row as stall } from '../row-08-stall.js'
import { row as death } from '../row-09-death.js'
import { row as partition } from '../row-13-partition.js'
import { empty, fill } from '../row-15-out-of-memory.js'
import { row as brokenState } from '../row-16-broken-state.js'

/** Something that happens to limiters, and exactly the alerts that docs/runbook.md names for it. */
export interface Scene {
  readonly title: string
  readonly alerts: readonly string[]
  run(watch: Watch): unknown
}

const OUTAGE = ['SluiceDecidedWithoutStore', 'SluiceStoreDown']

export const scenes: readonly Scene[] = [
  {
    title: 'nothing',
    alerts: [],
    run: (watch) => through({ title: 'nothing', begin() {}, end() {} }, watch),
  },
  { title: 'row 8, stall', alerts: OUTAGE, run: (watch) => stall.run(1, watch) },
  { title: 'row 9, death', alerts: OUTAGE, run: (watch) => death.run(1, watch) },
  { title: 'row 13, partition', alerts: OUTAGE, run: (watch) => partition.run(1, watch) },
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
  { title: 'a store that is slow', alerts: ['SluiceStoreSlow'], run: slow },
]

const LASTS_MS = 2000

/** The load of rows 8, 9 and 13 through something else. */
async function through(
  outage: Omit<Outage, 'lastsMs'>,
  watch: Watch,
  server?: { readonly host: string; readonly port: number },
): Promise<void> {
  const own = server ? undefined : await startRedis()
  const { host, port } = (server ?? own)!
  const store = redisStore({ host, port })
  await sitOut(store, { ...outage, lastsMs: LASTS_MS }, watch)
  await store.close()
  await own?.stop()
}

async function outOfMemory(watch: Watch): Promise<void> {
  const server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
  await through({ title: 'full', begin: () => fill(server), end: () => empty(server) }, watch, server)
  await server.stop()
}

/** The user of Redis may not touch the keys of every fifth caller. */
async function forbidden(watch: Watch): Promise<void> {
  const server = await startRedis()
  const grant = (...rules: string[]) => command(server, 'ACL', 'SETUSER', 'default', 'resetkeys', ...rules)
  const outage = { title: 'forbidden', begin: () => grant('~*[0-7]'), end: () => grant('~*') }
  await through(outage, watch, server)
  await server.stop()
}

/** Within the deadline of 50 ms. */
async function slow(watch: Watch): Promise<void> {
  const server = await startRedis()
  const proxy = await startProxy(server)
  const begin = () => proxy.latency(SLOW_MS, 'to-client')
  await through({ title: 'slow', begin, end: () => proxy.heal() }, watch, proxy)
  await proxy.close()
  await server.stop()
}

const SLOW_MS = 30
