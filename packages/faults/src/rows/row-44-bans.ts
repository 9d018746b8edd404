import { createLimiter, memoryStore } from '@sluice/core'
import { startCluster, startProxy, startRedis, until } from '@sluice/harness/redis'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import { type Banned, type BanJob, LARGE, LISTS, type Place } from '../workers/ban-jobs.js'
import type { Outcome, Row } from '../row.js'

/** A ban is on the key: another process, another list of policies, an outage or a flood of keys is no way around it. */
export const row: Row = { number: 44, fault: 'bans', warnings: ['STORE_DEGRADED'], run: ban }

const ENTRY = 'packages/faults/src/workers/banning.ts'
const KEYS = 400
/** No call waits for the process that writes a penalty's block under the other lists. */
const SPREAD_MS = 5000
const NAMES = Object.keys(LISTS) as (keyof typeof LISTS)[]

/**
 * Blocks keys on every kind of store. Passes if other processes deny them too, also after evictions and in an outage. `share`
 * is the part of the full load, 0 to 1.
 */
async function ban(share: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const [server, cluster] = await Promise.all([startRedis(), startCluster()])
  const proxy = await startProxy(server)
  const members = await Promise.all([0, 1].map(() => startMember(ENTRY, resolve('.'))))
  const keys = Array.from({ length: Math.max(8, Math.round(KEYS * share)) }, (_, i) => `k${i}`)
  const redis = { host: proxy.host, port: proxy.port }
  try {
    return together([
      evicted(keys),
      await banned('machine', members, { folder }, keys),
      await banned(
        'Cluster',
        members,
        { cluster: cluster.masters.map(({ host, port }) => ({ host, port })) },
        keys,
      ),
      await banned('Redis', members, { redis }, keys),
      await inAnOutage(members[1]!, keys, () => proxy.refuse()),
    ])
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await proxy.close()
    await Promise.all([server.stop(), cluster.stop()])
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One process bans, and its penalties begin; the other calls. The first has used no list but its own. */
async function banned(
  title: string,
  members: readonly Member[],
  place: Place,
  keys: readonly string[],
): Promise<Outcome> {
  const [one, other] = members as [Member, Member]
  const faults: string[] = []
  const expect = (what: string, seen: number, due: number): void => {
    if (seen !== due) faults.push(`${what}: ${seen} where ${due} are due`)
  }
  await run(one, { place, act: 'free', keys })
  await run(other, { place, act: 'paid', keys })
  await run(one, { act: 'block', keys })
  for (const act of NAMES) expect(`banned, ${act}`, (await run(other, { act, keys })).blocked, keys.length)
  await run(one, { act: 'unblock', keys })
  const after = await run(other, { act: 'paid', keys })
  expect('unblocked', after.admitted, keys.length)
  expect('left of what was consumed', after.remaining, LARGE - 2)
  for (let call = 0; call < 2; call++) await run(one, { act: 'free', keys }) // the second is refused
  const isBlocked = async (): Promise<boolean> => {
    for (const act of NAMES) if ((await run(other, { act, keys })).blocked < keys.length) return false
    return true
  }
  await until('penalties to block under every list', isBlocked, SPREAD_MS).catch((error) =>
    faults.push(String(error)),
  )
  const figure =
    `${title}: ${keys.length} keys that one process banned, unblocked and penalized, under ${NAMES.length} lists of ` +
    `another: ${faults.length} faults`
  return { pass: faults.length === 0, figure: faults[0] ? `${figure} (${faults[0]})` : figure }
}

/** Lets a process that has met the bans call on when no store answers any more. Passes if none of the keys is admitted. */
async function inAnOutage(member: Member, keys: readonly string[], begin: () => unknown): Promise<Outcome> {
  await begin()
  let admitted = 0
  let degraded = 0
  for (const act of NAMES) {
    const seen = await run(member, { act, keys })
    admitted += seen.admitted
    degraded += seen.degraded
  }
  const calls = NAMES.length * keys.length
  const figure = `in an outage of Redis: ${admitted} of ${calls} calls admitted`
  return { pass: admitted === 0 && degraded > 0, figure }
}

/** A store of so many keys, of which operators have banned a twentieth, meets ten times as many that a penalty blocks. */
function evicted(keys: readonly string[]): Outcome {
  const store = memoryStore({ maxKeys: 20 * keys.length })
  const limiter = createLimiter({ name: 'banning', policies: LISTS.free, penalty: { block: '1h' }, store })
  limiter.on('warning', () => {})
  for (const key of keys) void limiter.block(key, '1h')
  for (let i = 0; i < 200 * keys.length; i++) void limiter.decide(`flood ${i}`, { cost: 2 })
  for (let i = 0; i < 200 * keys.length; i++) {
    void limiter.decide(`flood ${i}`, { cost: 2 })
    void limiter.decide(`flood ${i}`, { cost: 2 })
  }
  let kept = 0
  for (const key of keys) {
    const decided = limiter.decide(key)
    if ('allowed' in decided && decided.reason === 'blocked') kept++
  }
  void limiter.close()
  const figure = `${kept} of ${keys.length} bans kept in a flood of ${200 * keys.length} keys that a penalty blocked`
  return { pass: kept === keys.length, figure }
}

/** Gives a process a job, and returns what became of its calls. */
async function run(member: Member, job: BanJob): Promise<Banned> {
  await member.prepare(job)
  return (await member.go()) as Banned
}
