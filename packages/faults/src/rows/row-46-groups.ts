import { createLimiter, type Decision, fixedWindow, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Cluster, command, info, pause, pipeline, startCluster } from '@sluice/harness/redis'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import { type ClusterClient, openClients } from './row-14-clients.js'

/** Calls of a group travel in one script: while their slot moves, some keys of it lie on one node and some on the other. */
export const row: Row = {
  number: 46,
  fault: 'groups of a Cluster',
  perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'], // of calls with the default deadline, while slots move
  run: disturb,
}

const GROUPS = 16
const LIMIT = 100_000
const MOVES = 3
const CALLERS = 64
/** Of the callers' keys; the group whose slot moves has a sixteenth of them, which get half of the calls. */
const KEYS = 320
const PATIENT = '5s'

/**
 * Moves slots of a Cluster whose keys lie in groups, under load. Passes if limits are exact, although Redis refuses scripts
 * whose keys are on their way. `share` is the part of the full load, 0 to 1.
 */
async function disturb(share: number): Promise<Outcome> {
  const cluster = await startCluster({ masters: 3 })
  const nodes = cluster.masters.map(({ host, port }) => ({ host, port }))
  const clients = await openClients(nodes, { groups: GROUPS, denialCache: false })
  const company = Math.max(2000, Math.round(10_000 * share))
  try {
    const outcomes: Outcome[] = []
    for (const client of clients) outcomes.push(await slotMoves(cluster, client, company, PATIENT))
    for (const client of clients) outcomes.push(await slotMoves(cluster, client, company))
    const refused = await refusals(cluster)
    outcomes.push({ pass: refused > 0, figure: `${refused} scripts refused with TRYAGAIN` })
    outcomes.push(await otherGroups(nodes))
    return together(outcomes)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
    await cluster.stop()
  }
}

/** The slot of a busy group goes round the masters, with `company` that makes each move take its time. */
async function slotMoves(
  cluster: Cluster,
  client: ClusterClient,
  company: number,
  deadline?: typeof PATIENT,
): Promise<Outcome> {
  const limiter = createLimiter({
    name: `groups-${deadline ? 'patient-' : ''}${client.name}`,
    store: client.store,
    policies: [fixedWindow({ limit: LIMIT, window: '365d' })],
    ...(deadline && { deadline }),
  })
  limiter.on('warning', () => {})
  const admitted = new Map<string, number>()
  const errors: string[] = []
  let [calls, degraded] = [0, 0]
  const call = async (key: string, cost = 1): Promise<Decision | undefined> => {
    calls++
    const decision = await limiter
      .consume(key, { cost })
      .catch((error: Error) => void errors.push(error.message))
    if (decision?.degraded) degraded++
    else if (decision?.allowed) admitted.set(key, (admitted.get(key) ?? 0) + cost)
    return decision ?? undefined
  }
  const keys = Array.from({ length: KEYS }, (_, i) => `user-${i}`)
  for (const key of keys) await call(key)
  const busy = await groupOf(cluster, limiter)
  // A node hands over a slot's keys in the order in which they came: their company comes between them.
  const owner = await cluster.ownerOf(busy.slot)
  for (const [i, key] of busy.keys.entries()) {
    await limiter.reset(key)
    admitted.delete(key)
    await call(key)
    const beside = Array.from(
      { length: Math.ceil(company / busy.keys.length) },
      (_, j) => `${busy.tag}:${i}:${j}`,
    )
    await pipeline(
      owner,
      beside.map((other) => ['SET', other, 'x'.repeat(100)]),
    )
  }
  let stopped = false
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = caller; !stopped; i++) {
      await call(i % 2 > 0 ? busy.keys[i % busy.keys.length]! : keys[i % KEYS]!)
    }
  })
  for (let move = 0; move < MOVES; move++) {
    await pause(50)
    const from = await cluster.ownerOf(busy.slot)
    const next = (cluster.masters.indexOf(from) + 1) % cluster.masters.length
    await cluster.moveSlot(busy.slot, from, cluster.masters[next]!)
  }
  stopped = true
  await Promise.all(callers)
  const disturbed = { calls, degraded }
  const wrong = deadline ? await wronglyCharged(busy.keys, call, admitted) : 0
  await limiter.close()
  const isExact = !deadline || (degraded === 0 && wrong === 0)
  return {
    pass: errors.length === 0 && isExact,
    figure:
      `${client.name}, ${deadline ? `deadline ${deadline}` : 'default deadline'}: ${disturbed.calls} calls in ${MOVES} moves, ` +
      `${disturbed.degraded} degraded, ${errors.length} errors${errors[0] ? ` (${errors[0]})` : ''}` +
      (deadline ? `, ${wrong} of ${busy.keys.length} keys charged otherwise than admitted` : ''),
  }
}

/** The group that has most callers: its tag, its slot and its callers' keys. */
async function groupOf(cluster: Cluster, { name }: Limiter) {
  const found = await Promise.all(
    cluster.masters.map((node) => command<string[]>(node, 'KEYS', `*:${name}:*`)),
  )
  const byTag = new Map<string, string[]>()
  for (const key of found.flat()) {
    const [tag] = /\{.*\}/.exec(key)!
    byTag.set(tag, [...(byTag.get(tag) ?? []), key])
  }
  const [tag, keys] = [...byTag].toSorted(([, one], [, other]) => other.length - one.length)[0]!
  return {
    tag,
    slot: await cluster.slotOf(tag),
    keys: keys.map((key) => key.slice(key.lastIndexOf(':') + 1)),
  }
}

/** Takes all that is left of each key. How many were then not charged once for each call that was admitted. */
async function wronglyCharged(
  keys: readonly string[],
  call: (key: string, cost: number) => Promise<Decision | undefined>,
  admitted: ReadonlyMap<string, number>,
): Promise<number> {
  for (const key of keys) {
    for (const cost of [10_000, 1000, 100, 10, 1]) while ((await call(key, cost))?.allowed);
  }
  return keys.filter((key) => admitted.get(key) !== LIMIT).length
}

/** How many scripts the nodes have refused because the keys of a slot were on their way (TRYAGAIN). */
async function refusals({ masters }: Cluster): Promise<number> {
  const stats = await Promise.all(masters.map((node) => info(node, 'errorstats')))
  return stats.reduce((sum, { errorstat_TRYAGAIN: stat = 'count=0' }) => sum + Number(stat.split('=')[1]), 0)
}

/** While processes with other numbers of groups take turns, each admits its limit: their states are apart. */
async function otherGroups(cluster: readonly { host: string; port: number }[]): Promise<Outcome> {
  const stores = [undefined, GROUPS, 4 * GROUPS].map((groups) =>
    redisStore({ cluster }, groups ? { groups } : {}),
  )
  const limit = 10
  const limiters = stores.map((store) => {
    const policies = [fixedWindow({ limit, window: '365d' })]
    return createLimiter({ name: 'rolling', store, policies, deadline: PATIENT, onStoreError: 'throw' })
  })
  const admitted = Array.from({ length: KEYS }, () => 0)
  for (let turn = 0; turn < 2 * limit; turn++) {
    for (const limiter of limiters) {
      const decisions = await Promise.all(admitted.map((_, i) => limiter.consume(`user-${i}`)))
      for (const [i, { allowed }] of decisions.entries()) if (allowed) admitted[i]!++
    }
  }
  await Promise.all(limiters.map((limiter) => limiter.close()))
  for (const store of stores) void store.close()
  const [least, most] = [Math.min(...admitted), Math.max(...admitted)]
  const figure = `none, ${GROUPS} and ${4 * GROUPS} groups in turn: ${least} to ${most} of ${3 * limit} admitted, limit ${limit}`
  return { pass: least === 3 * limit && most === 3 * limit, figure }
}
