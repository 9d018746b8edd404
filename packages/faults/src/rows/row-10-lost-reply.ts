import {
  type Address,
  command,
  pause,
  type Proxy,
  startCluster,
  startProxy,
  startRedis,
  startSentinel,
} from '@sluice/harness/redis'
import { charged } from '../charged.js'
import type { PolicySpec } from '../policy-spec.js'
import { startFleet } from '../fleet.js'
import type { Outcome, Row } from '../row.js'

/** A call whose reply was lost is never sent again, so no key is charged twice for one call. */
export const row: Row = { number: 10, fault: 'lost reply', run: lose }

const CALLERS = 16
const MOST_CALLS = 20_000 // of each caller, should none be answered any more
const POLICIES: readonly PolicySpec[] = [['fixedWindow', { limit: 1_000_000_000, window: '365d' }]]

/** By the client package that is installed: what a store makes a connection of its own from. */
const KINDS = [
  ['ioredis', [], ['server', 'sentinel', 'cluster']],
  ['iovalkey', ['ioredis'], ['server', 'sentinel', 'cluster']],
  ['node-redis', ['ioredis', 'iovalkey'], ['server', 'cluster']],
] as const

/**
 * Cuts connections while replies are on their way, for each kind of client and server. Passes if Redis has charged no more
 * units than calls were made, so that none was sent again. `share` is the part of the full load, 0 to 1.
 */
async function lose(share: number): Promise<Outcome> {
  const seconds = Math.max(0.6, 3 * share)
  const setups = await startSetups()
  const wrong: string[] = []
  const total = { made: 0, executed: 0, answered: 0, cuts: 0 }
  for (const [name, missing, reached] of KINDS) {
    const fleet = await startFleet({ missing, environments: [{}] })
    for (const by of reached) {
      const { redis, server, proxy } = setups[by]
      const key = `${name} to a ${by}`
      const cutting = new AbortController()
      let cuts = Promise.resolve(0)
      const job = { redis, key, policies: POLICIES, callers: CALLERS, calls: MOST_CALLS, seconds }
      const [result] = await fleet.run([job], async () => {
        cuts = cutUntil(cutting.signal, proxy)
      })
      cutting.abort()
      total.cuts += await cuts
      const { calls, admittedAt } = result!
      // Several decisions may be one call of the script, and each that is executed charges a unit.
      const [executed] = await charged({ host: server.host, port: server.port }, POLICIES, key)
      const figure = `${calls} calls, ${executed} executed, ${admittedAt.length} answered`
      if (!(executed! <= calls && admittedAt.length < executed!)) wrong.push(`${key}: ${figure}`)
      total.made += calls
      total.executed += executed!
      total.answered += admittedAt.length
    }
    await fleet.end()
  }
  await Promise.all(Object.values(setups).map(({ stop }) => stop()))
  return {
    pass: wrong.length === 0,
    figure:
      `${total.cuts} connections cut on a reply, own connections of 3 packages: ${total.made} calls made, ` +
      `${total.executed} executed and charged, ${total.answered} answered${wrong[0] ? `; ${wrong[0]}` : ''}`,
  }
}

/** Cuts as often as this many bytes of replies have passed, which is after a hundred calls or two. */
const CUT_EVERY_BYTES = 10_000

/** Cuts a reply off again and again until `ended` aborts, and then mends the proxy. Returns how many were cut. */
async function cutUntil(ended: AbortSignal, { counts, cutOnReply, heal }: Proxy): Promise<number> {
  const before = counts.cuts
  cutOnReply()
  while (!ended.aborted) {
    const next = counts.toClient + CUT_EVERY_BYTES
    while (counts.toClient < next && !ended.aborted) await pause(1)
    cutOnReply()
  }
  await heal()
  return counts.cuts - before
}

/** A quorum that the sentinels never reach, though they too see connections cut. */
const NO_FAILOVER = 100

interface Setup {
  /** The server that the store connects to: `server` behind `proxy`. */
  readonly redis: object
  readonly server: Address
  readonly proxy: Proxy
  stop(): Promise<void>
}

/** Starts a server, a Sentinel setup and a Cluster, each with a proxy in front of the node that takes the calls. */
async function startSetups(): Promise<Record<'server' | 'sentinel' | 'cluster', Setup>> {
  const [server, sentinel, cluster] = await Promise.all([
    startRedis(),
    startSentinel(),
    startCluster({ masters: 1 }),
  ])
  const behind = async (
    node: Address,
    redis: (proxy: Address) => object,
    stop: () => Promise<void>,
  ): Promise<Setup> => {
    const proxy = await startProxy(node)
    return { redis: redis(proxy), server: node, proxy, stop: async () => (await proxy.close(), stop()) }
  }
  const { sentinels, masterName, master } = sentinel
  const node = cluster.masters[0]!
  const setups = {
    server: await behind(server, at, () => server.stop()),
    sentinel: await behind(
      master,
      () => ({ sentinels: sentinels.map(at), name: masterName }),
      () => sentinel.stop(),
    ),
    cluster: await behind(
      node,
      (proxy) => ({ cluster: [at(proxy)] }),
      () => cluster.stop(),
    ),
  }
  const { host, port } = setups.sentinel.proxy
  for (const each of sentinels) {
    await command(each, 'SENTINEL', 'REMOVE', masterName)
    await command(each, 'SENTINEL', 'MONITOR', masterName, host, port, NO_FAILOVER)
  }
  await command(node, 'CONFIG', 'SET', 'cluster-announce-ip', setups.cluster.proxy.host)
  await command(node, 'CONFIG', 'SET', 'cluster-announce-port', setups.cluster.proxy.port)
  return setups
}

/** Host and port alone of something that has more fields. */
function at({ host, port }: Address): Address {
  return { host, port }
}
