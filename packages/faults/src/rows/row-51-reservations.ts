import { createLimiter, fixedWindow, type Limiter, type Reservation } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import {
  type Address,
  command,
  pause,
  type RedisServer,
  startProxy,
  startRedis,
  until,
} from '@sluice/harness/redis'
import { Builds } from '../builds.js'
import { everyAlgorithm, isCalendar } from '../every-algorithm.js'
import { startMember } from '../fleet.js'
import { together } from '../outage.js'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import type { Outcome, Row } from '../row.js'
import type { ReservingJob } from '../workers/reserving-member.js'
import type { RollingJob, RollingResult } from '../workers/rolling-member.js'

/** What dead processes held comes back, and what was settled is charged once, whatever happens to holders, server and state. */
export const row: Row = {
  number: 51,
  fault: 'reservations',
  perhaps: ['CLIENT_REPLAYS', 'STORE_DEGRADED', 'STORE_RECOVERED', 'STORE_FORGETS', 'RESERVATION_DRAINS'],
  run: reserve,
}

/** A log gives back what is among so many of its newest entries. */
const NEWEST = 1000
const COST = 4
const REAL = 3
const TTL = 4000
const YEAR = [fixedWindow({ limit: 1_000_000, window: '365d' })]

/** Kills holders, settles again and again, loses state, and lets an older build call beside. `share` is the part of the full load, 0 to 1. */
async function reserve(share: number): Promise<Outcome> {
  const server = await startRedis()
  const outcomes: Outcome[] = []
  try {
    const size = Math.max(2, Math.round(4 * share))
    const runs = Math.max(1, Math.round(10 * share))
    outcomes.push(await killed(server, size, Math.max(6, 2 * Math.round(250 * share)), runs))
    outcomes.push(await settledAgain(server, Math.max(50, Math.round(1000 * share))))
    outcomes.push(await repliesLost(server, Math.max(50, Math.round(1000 * share))))
    outcomes.push(await pausedAcrossEnds(server, Math.max(20, Math.round(100 * share))))
    outcomes.push(await olderCopy(server))
    outcomes.push(await besideAnOlderBuild(server))
    outcomes.push(await stopped(server))
  } finally {
    await server.stop()
  }
  return together(outcomes)
}

/** A limiter on a store of its own. */
function open({ host, port }: Address, policies = YEAR, name = 'reserving') {
  const store = redisStore({ host, port })
  const options = { deadline: '10s', onStoreError: 'throw', reservations: {} } as const
  const limiter = createLimiter({ name, policies, store, ...options })
  limiter.on('warning', () => {})
  return { limiter, close: () => store.close() }
}

/**
 * Holders of half-settled reservations are killed, run after run on other keys. After the end windows, calendars and logs count what
 * was settled and no more, the others something between that and all that was charged.
 */
async function killed(redis: Address, size: number, count: number, runs: number): Promise<Outcome> {
  const [settled, charged] = [(size * count * REAL) / 2, size * count * COST]
  const wrong: string[] = []
  let between: readonly string[] = []
  for (let run = 0; run < runs; run++) {
    const keys = everyAlgorithm(10 * charged).map(([title, spec]) => [`${title}, run ${run}`, spec] as const)
    await holdAndDie(redis, size, { keys, count, cost: COST, real: REAL, ttl: TTL })
    const drained: string[] = []
    for (const [key, spec] of keys) {
      const { algorithm } = policyOf(spec)
      const { used, held } = await stateOf(redis, key, spec)
      const isExact = !algorithm.drains && (!algorithm.ring || charged <= NEWEST)
      if (held !== 0 || used < (isExact ? settled : 0) || used > (isExact ? settled : charged))
        wrong.push(`${key}: ${used} used, ${held} held`)
      if (!isExact) drained.push(`${key} ${used}`)
    }
    between = drained
  }
  const figure =
    `${(size * count) / 2} holders of each algorithm killed, ${runs} runs: ${settled} used of ${charged} charged where nothing drains; ` +
    between.join(', ')
  return { pass: wrong.length === 0, figure: wrong.length > 0 ? `${figure} (${wrong.join('; ')})` : figure }
}

/** Lets processes reserve and settle half, kills them, and waits for the end of what they held. */
async function holdAndDie({ host, port }: Address, size: number, job: Omit<ReservingJob, 'redis'>) {
  const members = await Promise.all(
    Array.from({ length: size }, () => startMember('packages/faults/src/workers/reserving-member.ts', '.')),
  )
  await Promise.all(members.map((member) => member.prepare({ redis: { host, port }, ...job })))
  await Promise.all(members.map((member) => member.go()))
  await Promise.all(members.map((member) => member.end()))
  await pause(job.ttl + 100)
}

/** What a key has used under a policy, and what of that is held. */
async function stateOf(redis: Address, key: string, spec: PolicySpec) {
  const { limiter, close } = open(redis, [policyOf(spec)])
  const [state] = (await limiter.peek(key)).policies
  await close()
  return state!
}

/** Each reservation is settled five times at once, by its object and by its id in another limiter: it is charged once. */
async function settledAgain(redis: Address, count: number): Promise<Outcome> {
  const [here, there] = [open(redis), open(redis)]
  const reservations = await Promise.all(Array.from({ length: count }, () => taken(here.limiter, 'again')))
  await Promise.all(
    reservations.map(async (reservation) => {
      const others = Array.from({ length: 4 }, () => there.limiter.reservation('again', reservation.id))
      await Promise.all([reservation, ...others].map((each) => each.settle(REAL)))
    }),
  )
  const [state] = (await here.limiter.peek('again')).policies
  await Promise.all([here.close(), there.close()])
  const figure = `${5 * count} settlings of ${count}: ${state!.used} used of ${count * REAL}`
  return { pass: state!.used === count * REAL && state!.held === 0, figure }
}

/** The replies of settlings are cut off once the server has carried them out. Sent again until they are answered, each is charged once. */
async function repliesLost(redis: Address, count: number): Promise<Outcome> {
  const proxy = await startProxy(redis)
  const [there, here] = [open(proxy), open(redis)]
  let [lost, late] = [0, 0]
  const settled = async (reservation: Reservation): Promise<void> => {
    for (let tries = 0; tries < 100; tries++) {
      try {
        if ((await reservation.settle(REAL)).late) late++
        return
      } catch {
        if (tries === 0) lost++
        await pause(50)
      }
    }
  }
  let made = 0
  for (; lost < count && made < 5 * count; made += BATCH) {
    const reservations = await Promise.all(Array.from({ length: BATCH }, () => taken(there.limiter, 'lost')))
    proxy.cutOnReply()
    await Promise.all(reservations.map(settled))
  }
  const [state] = (await here.limiter.peek('lost')).policies
  const { cuts } = proxy.counts
  await Promise.all([here.close(), there.close()])
  await proxy.close()
  const figure = `${lost} replies of settlings lost with ${cuts} connections: ${state!.used} used of ${made * REAL}`
  return { pass: lost >= count && late === 0 && state!.used === made * REAL && state!.held === 0, figure }
}

/** The server stands still across the ends of reservations whose settlings are sent again and again meanwhile: each is charged once. */
async function pausedAcrossEnds(server: RedisServer, count: number): Promise<Outcome> {
  const store = redisStore({ host: server.host, port: server.port })
  const options = {
    name: 'reserving',
    policies: YEAR,
    store,
    onStoreError: 'throw',
    reservations: {},
  } as const
  const limiter = createLimiter({ ...options, deadline: '10s' })
  const hasty = createLimiter({ ...options, deadline: '50ms' })
  for (const each of [limiter, hasty]) each.on('warning', () => {})
  const ttl = 1000
  const made = await Promise.all(
    Array.from({ length: count }, async () => {
      const { reservation } = await limiter.reserve('paused', { cost: COST, ttl })
      return hasty.reservation('paused', reservation!.id)
    }),
  )
  await pause(ttl / 2)
  server.pause()
  const settleAll = (): Promise<unknown> =>
    Promise.allSettled(made.map((reservation) => reservation.settle(REAL)))
  for (let i = 0; i < 3; i++) await settleAll()
  await pause(ttl)
  server.resume()
  const isSettled = async (): Promise<boolean> => {
    await settleAll()
    return made.every(({ isSettled }) => isSettled)
  }
  await until('the settlings to be answered', isSettled, 20_000)
  const [state] = (await limiter.peek('paused')).policies
  await store.close()
  const figure = `${count} settled again and again while the server stood still at their ends: ${state!.used} used of ${count * REAL}`
  return { pass: state!.used === count * REAL && state!.held === 0, figure }
}

/** A copy of the state comes back that is older than a reservation, as after a failover: its real cost is charged, and said to be late. */
async function olderCopy(server: RedisServer): Promise<Outcome> {
  const { limiter, close } = open(server)
  await taken(limiter, 'older')
  const [key] = await command<string[]>(server, 'KEYS', '*:older')
  await command(server, 'COPY', key!, 'copy')
  const reservation = await taken(limiter, 'older')
  await command(server, 'COPY', 'copy', key!, 'REPLACE')
  const { late } = await reservation.settle(REAL)
  const [state] = (await limiter.peek('older')).policies
  await close()
  const figure = `settled after an older copy came back: late ${late}, ${state!.used} used of ${COST + REAL}`
  return { pass: late && state!.used === COST + REAL && state!.held === COST, figure }
}

/** Settlings that are sent at once, as calls on one key are, and lose one connection. */
const BATCH = 16

async function taken(limiter: Limiter, key: string): Promise<Reservation> {
  return (await limiter.reserve(key, { cost: COST, ttl: '10m' })).reservation!
}

/** A process of the newest commit of this format calls the same keys of a limiter of the same name: neither loses its state. */
async function besideAnOlderBuild(redis: Address): Promise<Outcome> {
  const builds = new Builds()
  const before = builds.lastOfThisFormat() ?? builds.present
  const member = await startMember('packages/faults/src/workers/rolling-member.ts', before.folder)
  const wrong: string[] = []
  const limit = 10
  try {
    for (const [title, policy] of everyAlgorithm(limit).filter(([, spec]) => !isCalendar(spec))) {
      const key = `beside ${title}`
      const { host, port } = redis
      await member.prepare({ redis: { host, port }, policy, key } satisfies RollingJob)
      const { limiter, close } = open(redis, [policyOf(policy)], 'rolling')
      const decisions = []
      let [admitted, healed] = [0, 0]
      for (let i = 0; i < limit + 2; i++) {
        decisions.push(await limiter.reserve(key, { cost: 1, ttl: '10m' }))
        const result = (await member.go()) as RollingResult
        if (result.allowed) admitted++
        healed = result.healed
      }
      const reserved = decisions.filter(({ allowed }) => allowed).length
      await Promise.all(decisions.map(async ({ reservation }) => reservation?.release()))
      if (admitted !== limit || reserved !== limit || healed > 0)
        wrong.push(`${title}: ${admitted} admitted, ${reserved} reserved, ${healed} healed`)
      await close()
    }
  } finally {
    await member.end()
    builds.remove()
  }
  return {
    pass: wrong.length === 0,
    figure: `beside ${before.what} nothing lost${wrong.map((each) => ` (${each})`).join()}`,
  }
}

/** The server ends between a reservation and its settling, and begins again without state: the real cost is charged, and said to be late. */
async function stopped(server: RedisServer): Promise<Outcome> {
  const { limiter, close } = open(server)
  const reservation = await taken(limiter, 'stopped')
  await server.kill()
  const failed = await reservation.settle(REAL).then(
    () => false,
    () => true,
  )
  await server.restart()
  let late: boolean | undefined
  for (let i = 0; late === undefined && i < 50; i++) {
    late = await reservation.settle(REAL).then(
      ({ late: isLate }) => isLate,
      () => undefined,
    )
    if (late === undefined) await pause(100)
  }
  const [state] = (await limiter.peek('stopped')).policies
  await close()
  const figure = `settled after the state was lost: late ${late}, ${state!.used} used of ${REAL}`
  return { pass: failed && late === true && state!.used === REAL, figure }
}
