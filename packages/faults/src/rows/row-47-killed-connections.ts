import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startPostgres } from '@sluice/harness/postgres'
import { type Address, command, pipeline, startCluster, startProxy, startRedis } from '@sluice/harness/redis'
import { Pool } from 'pg'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { KilledJob, KilledResult, Place } from '../workers/killed.js'

/**
 * Connections are killed again and again while semaphores, waits, boards and leases use them: no promise that a client makes for
 * a store rejects without an owner, which would end the process, and all permits come back.
 */
export const row: Row = {
  number: 47,
  fault: 'killed connections',
  tested: true,
  warnings: ['CLIENT_REPLAYS', 'POSTGRES_PREPARES'],
  perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: kill,
}

const ENTRY = 'packages/faults/src/workers/killed.ts'
const KILLS = 300
/** For each kill: clients wait before they connect again, and circuits before they ask again. */
const LONGEST_MS = 2000

/** Kills each kind of connection of each client so many times. `share` is the part of the full load, 0 to 1. */
async function kill(share: number): Promise<Outcome> {
  const kills = Math.max(10, Math.round(KILLS * share))
  const isShort = share <= SHORT
  const trials = [
    ofRedis('six clients of Redis', kills, ['own', ...HANDED_IN]),
    ofMachine(kills),
    ofPostgres(kills, isShort),
  ]
  const more = () => [
    ofRedis('iovalkey by URL', kills, ['own'], ['ioredis']),
    ofRedis('node-redis by URL', kills, ['own'], ['ioredis', 'iovalkey']),
    ofCluster(kills),
  ]
  return together(await Promise.all([...trials, ...(isShort ? [] : more())]))
}

/** Up to this share a Cluster is left out, which takes seconds to start, and so are packages that others stand in for. */
const SHORT = 0.1

const HANDED_IN = ['ioredis', 'iovalkey', 'node-redis', 'node-redis 5', 'pool of node-redis'] as const

/**
 * Kills what subscribes and what has run a script, each so many times, at a server for each client. Half of the subscriptions
 * break when they are asked for.
 */
async function ofRedis(
  title: string,
  kills: number,
  clients: readonly ('own' | (typeof HANDED_IN)[number])[],
  missing: readonly string[] = [],
): Promise<Outcome> {
  const servers = await Promise.all(clients.map(() => startRedis()))
  const proxies = await Promise.all(servers.map(startProxy))
  const stores = clients.map((client, i) => ({ client, host: proxies[i]!.host, port: proxies[i]!.port }))
  const killOnes = () => {
    for (const proxy of proxies) proxy.cutOnCall('subscribe')
    const subscribers = servers.filter((_, i) => clients[i] !== 'pool of node-redis') // it cannot subscribe
    return Promise.all([
      ...subscribers.map((server) => again(kills, () => killSubscribers(server))),
      ...servers.map((server) => again(kills, () => killCallers(server))),
    ])
  }
  try {
    return await survive({ title, kills, stores, missing }, killOnes, () =>
      Promise.all(proxies.map((proxy) => proxy.heal())),
    )
  } finally {
    await Promise.all([...proxies.map((proxy) => proxy.close()), ...servers.map((server) => server.stop())])
  }
}

/** Kills the connections of four clients at the nodes of a Cluster. */
async function ofCluster(kills: number): Promise<Outcome> {
  const { masters, stop } = await startCluster()
  const cluster = masters.map(({ host, port }) => ({ host, port }))
  const stores = (['own', 'ioredis', 'iovalkey', 'node-redis'] as const).map((client) => ({
    client,
    cluster,
  }))
  const each = async (killOf: (node: Address) => Promise<number>) => {
    const counts = await Promise.all(masters.map(killOf))
    return counts.reduce((sum, count) => sum + count, 0)
  }
  const all = kills * stores.length
  try {
    return await survive({ title: 'four clients of a Cluster', kills: all, stores }, () =>
      Promise.all([again(all, () => each(killSubscribers)), again(all, () => each(killCallers))]),
    )
  } finally {
    await stop()
  }
}

/** Kills the connections of a process to the one that serves the machine. */
async function ofMachine(kills: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-killed-'))
  const server = await startMember(ENTRY, resolve('.'))
  try {
    await ask(server, { stores: [{ client: 'own', folder, serve: true }] })
    const title = 'a process of a machine'
    return await survive({ title, kills, stores: [{ client: 'own', folder, serve: false }] }, async () => [
      await again(kills, () => ask<number>(server, 'kill')),
    ])
  } finally {
    await server.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Ends the backends of connections that were made long enough ago to have run a statement. Skipped without a Postgres. */
async function ofPostgres(kills: number, isShort: boolean): Promise<Outcome> {
  const server = await startPostgres().catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'NO_POSTGRES') return error.message
    throw error
  })
  if (typeof server === 'string') return { pass: true, figure: `skipped: ${server}` }
  const admin = new Pool({ connectionString: server.url })
  const url = (name: string) => `${server.url}?application_name=${name}`
  const killNamed = (name: string) =>
    again(kills, async () => Number((await admin.query(TERMINATE, [name])).rows[0].count))
  const of = (title: string, clients: readonly ('own' | 'pg' | 'postgres')[], missing: readonly string[]) => {
    const names = clients.map((client) => `${client}${missing.join('')}`)
    const stores = clients.map((client, i) => ({ client, postgres: url(names[i]!) }))
    return survive({ title, kills, stores, missing }, () => Promise.all(names.map(killNamed)))
  }
  try {
    return together(
      await Promise.all([
        of('clients of Postgres', ['own', 'pg', 'postgres'], []),
        ...(isShort ? [] : [of('postgres by URL', ['own'], ['pg'])]),
      ]),
    )
  } finally {
    await admin.end()
    await server.stop()
  }
}

const TERMINATE = `select count(pg_terminate_backend(pid)) from pg_stat_activity
  where application_name = $1 and backend_start < now() - interval '40 ms'`

interface Trial {
  readonly title: string
  /** Of each kind of connection. */
  readonly kills: number
  readonly stores: readonly Place[]
  /** Packages that the process does not find. */
  readonly missing?: readonly string[]
}

/**
 * Has a process use stores while their connections are killed. Passes if nothing in it rejected or threw that nobody caught, and
 * all permits are back when it can reach the stores again.
 */
async function survive(
  { title, kills, stores, missing }: Trial,
  killAll: () => Promise<readonly number[]>,
  heal = async (): Promise<unknown> => undefined,
): Promise<Outcome> {
  const member = await startMember(ENTRY, resolve('.'), missing)
  try {
    await ask(member, { stores })
    const counts = await killAll()
    await heal()
    const { unhandled, uncaught, back, permits, away, moved } = await ask<KilledResult>(member, 'end')
    const isKilled = counts.every((count) => count >= kills) && moved > 0
    const pass = isKilled && unhandled.length + uncaught.length === 0 && back === permits
    const first = unhandled[0] ?? uncaught[0] ?? away[0]
    const figure =
      `${title}: ${counts.join(' + ')} kills, ${unhandled.length} unhandled, ${uncaught.length} uncaught, ` +
      `${back} of ${permits} permits back, ${moved} moved${first === undefined ? '' : ` (${first})`}`
    return { pass, figure }
  } finally {
    await member.end()
  }
}

/** Gives a process a job, and returns its result. */
async function ask<Result>(member: Member, job: KilledJob): Promise<Result> {
  await member.prepare(typeof job === 'string' ? (job as unknown as object) : job)
  return (await member.go()) as Result
}

/** Kills until so many connections were, or it lasts too long. The clients come back as fast as they can. */
async function again(kills: number, killOnce: () => Promise<number>): Promise<number> {
  const deadline = performance.now() + kills * LONGEST_MS
  let killed = 0
  while (killed < kills && performance.now() < deadline) killed += await killOnce()
  return killed
}

/** Kills all connections that are subscribed to a channel. */
function killSubscribers(server: Address): Promise<number> {
  return command<number>(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
}

/** Kills all connections that have run a script since they were made. */
async function killCallers(server: Address): Promise<number> {
  const list = await command(server, 'CLIENT', 'LIST', 'TYPE', 'normal')
  const ids = [...list.matchAll(/^id=(\d+).* cmd=eval/gm)].map(([, id]) => id!)
  if (ids.length === 0) return 0
  const replies = await pipeline(
    server,
    ids.map((id) => ['CLIENT', 'KILL', 'ID', id]),
  )
  return replies.filter((reply) => reply === 1).length
}
