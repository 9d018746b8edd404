import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { memoryStore } from '@sluice/core'
import { type Address, type Cluster, pause, startCluster, startRedis, until } from '@sluice/harness/redis'
import { drainsContinuously, mainShapes } from '@sluice/testing/internal'
import { lasting } from '../every-algorithm.js'
import type { PolicySpec } from '../policy-spec.js'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import {
  areFree,
  chargedTo,
  openWholes,
  type Place,
  type WholeJob,
  type WholeResult,
} from '../scenarios/whole-calls.js'
import type { Outcome, Row } from '../row.js'
import { cutShort } from './row-39-cut-short.js'

/** A call on several keys charges all or none: in a race, where processes die, and where stores stop between its steps. */
export const row: Row = {
  number: 39,
  fault: 'several keys',
  timed: true,
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED', 'STORE_FORGETS'],
  run: callOnSeveral,
}

const ENTRY = 'packages/faults/src/workers/several-keys.ts'
const PROCESSES = 4
const TENANT_LIMIT = 50
const USERS = ['ada', 'ben', 'cem', 'dan', 'eva']
const TRIES = 80
const CALLERS = 16

/**
 * Makes calls on several keys, on every kind of store, and cuts them short midway. Passes if each is charged on all of its
 * keys or on none; where a process dies midway, one may stay charged. `share` is the part of the full load, 0 to 1.
 */
async function callOnSeveral(share: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const [server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
  const members = await Promise.all(Array.from({ length: PROCESSES }, startCaller))
  try {
    const { host, port } = server
    const machine = (title: string): Place => ({ machine: title.replaceAll(/\W+/g, '-').slice(-60), folder })
    return together([
      await races('memory', [], () => ({ store: memoryStore() })),
      await races('Redis', members, () => ({ redis: { host, port } })),
      await races('machine', members, machine),
      await races('Cluster', members, () => ({ cluster: addressesOf(cluster) })),
      await permitRace('Redis', members, { redis: { host, port } }),
      await permitRace('Cluster', members, { cluster: addressesOf(cluster) }),
      // Each race has one moment at which one of several may lose it between its steps.
      await permitRace('Redis, reserved', members, { redis: { host, port } }, true),
      await permitRace('Redis, reserved again', members, { redis: { host, port } }, true),
      await permitRace('Redis, reserved a third time', members, { redis: { host, port } }, true),
      await deaths(cluster, folder, Math.max(4, Math.round(100 * share))),
      ...(await cutShort(cluster, Math.max(2, Math.round(20 * share)))),
    ])
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await Promise.all([server.stop(), cluster.stop()])
    rmSync(folder, { recursive: true, force: true })
  }
}

const startCaller = (): Promise<Member> => startMember(ENTRY, resolve('.'))

/** Host and port of each master. */
function addressesOf({ masters }: Cluster): Address[] {
  return masters.map(({ host, port }) => ({ host, port }))
}

/** Users of one tenant race for what he has, from all processes at once; in this one where there are no others. */
async function races(
  title: string,
  members: readonly Member[],
  placeOf: (title: string) => Place,
): Promise<Outcome> {
  const slots: PolicySpec = ['gcra', { limit: TENANT_LIMIT, window: '1d', slots: 16 }]
  const specs = [
    // Debts give nothing back of what has drained meanwhile.
    ...mainShapes().map(
      (shape) => [shape.title, lasting(shape, TENANT_LIMIT), drainsContinuously(shape)] as const,
    ),
    ['gcra with slots', slots, false] as const,
  ]
  const wrong: string[] = []
  let [undone, kept] = [0, 0]
  for (const [algorithm, policy, forgets] of specs) {
    const calls = (USERS.length * TRIES) / Math.max(1, members.length)
    const place = placeOf(algorithm)
    const job: WholeJob = {
      place,
      tenant: algorithm,
      policy,
      users: namesFor(algorithm),
      calls,
      callers: CALLERS,
    }
    const { result, fault, keeps } = await race(members, job, forgets)
    undone += result.undone
    kept += keeps
    if (fault !== undefined) wrong.push(`${algorithm}: ${fault}`)
  }
  const isApart = title === 'Cluster'
  const figure =
    `${title}: ${isApart ? 'at most' : 'exactly'} ${TENANT_LIMIT} passed and were charged in ${specs.length - wrong.length} of ` +
    `${specs.length} races` +
    (isApart ? `, ${undone} charges of lost races undone, ${kept} units of them kept` : '')
  return { pass: wrong.length === 0, figure: wrong[0] ? `${figure} (${wrong.join('; ')})` : figure }
}

/** The keys of the users for one algorithm. */
function namesFor(algorithm: string): string[] {
  return USERS.map((user) => `${user} of ${algorithm}`)
}

/**
 * Lets all processes call on the same keys. Returns what was wrong, and how many units stayed charged for calls that lost a
 * race: none may, unless what drains meanwhile is not given back (`forgets`), and then one for each charge that was undone.
 */
async function race(members: readonly Member[], job: WholeJob, forgets: boolean) {
  const results = members.length === 0 ? [await (await openWholes(job)).call()] : await all(members, job)
  const result = results.reduce((sum, { passed, undone, refused }) => ({
    passed: sum.passed + passed,
    undone: sum.undone + undone,
    refused: sum.refused + refused,
  }))
  const [ofTenant, ofUsers] = (await chargedTo(job)) as [number, number]
  const { passed, undone } = result
  const most = forgets ? undone : 0
  const keeps = ofTenant + ofUsers - 2 * passed
  const isWrong =
    passed > TENANT_LIMIT ||
    (!('cluster' in job.place) && passed !== TENANT_LIMIT) ||
    Math.min(ofTenant, ofUsers) < passed ||
    keeps > most
  return {
    result,
    keeps,
    fault: isWrong ? `${passed} passed, ${ofTenant} and ${ofUsers} charged` : undefined,
  }
}

/** Users of one tenant race for what he has and for permits: who gets no permit is charged nothing, and none stays taken. */
async function permitRace(
  title: string,
  members: readonly Member[],
  place: Place,
  reserves = false,
): Promise<Outcome> {
  // Those that reserve race for units too: as many as have a permit try for the last ones.
  const atOnce = reserves ? 16 : 2
  const job: WholeJob = {
    place,
    tenant: title,
    policy: ['slidingLog', { limit: reserves ? TENANT_LIMIT : 10_000, window: '1d' }],
    reserves,
    users: namesFor(title),
    calls: (USERS.length * TRIES) / members.length,
    callers: CALLERS,
    atOnce,
  }
  const results = await all(members, job)
  const [passed, refused] = [sumOf(results, 'passed'), sumOf(results, 'refused')]
  const charged = await chargedTo(job)
  const [isExact, isFree] = [charged.every((units) => units === passed), await areFree(job)]
  return {
    pass: isExact && isFree && passed > 0 && refused > 0,
    figure:
      `${title}, with ${atOnce} permits: ${passed} passed, ${refused} got no permit, ${charged.join(' and ')} charged, ` +
      (isFree ? 'no permit stays taken' : 'a permit stays taken'),
  }
}

const sumOf = (results: readonly WholeResult[], count: keyof WholeResult): number =>
  results.reduce((sum, result) => sum + result[count], 0)

/** Gives all processes one job and lets them begin at the same moment, when all are ready. Returns their results. */
async function all(members: readonly Member[], job: WholeJob): Promise<WholeResult[]> {
  await Promise.all(members.map((member) => member.prepare(job)))
  return Promise.all(members.map(async (member) => (await member.go()) as WholeResult))
}

/** Processes that are killed in the middle of a call lose what that call had charged. */
async function deaths(cluster: Cluster, folder: string, kills: number): Promise<Outcome> {
  const job: WholeJob = {
    place: { cluster: addressesOf(cluster) },
    tenant: 'killed',
    policy: ['slidingLog', { limit: 100_000, window: '1d' }],
    users: ['ada'],
    calls: Infinity,
    callers: 1,
  }
  let passed = 0
  const next = Array.from({ length: kills }, (_, i) => i)
  const killAgain = async (): Promise<void> => {
    for (let i = next.pop(); i !== undefined; i = next.pop()) {
      const member = await startCaller()
      const passes = join(folder, `passes-${i}`)
      await member.prepare({ ...job, passes })
      const killed = member.go().catch(() => {})
      await until('calls to pass', () => statSync(passes).size > 0)
      await pause(2.3 * (i % 11)) // at another point of a call each time
      await member.end()
      await killed
      passed += statSync(passes).size
    }
  }
  await Promise.all([killAgain(), killAgain(), killAgain()])
  const charged = await chargedTo(job)
  const lost = charged.map((units) => units - passed)
  return {
    pass: lost.every((units) => units >= 0 && units <= kills),
    figure: `${kills} processes killed midway in ${passed} calls: ${lost.join(' and ')} units lost (bar ${kills})`,
  }
}
