import { resolve } from 'node:path'
import { fixedWindow } from '@sluice/core'
import { type Address, pause, startRedis } from '@sluice/harness/redis'
import { type ActRequest, explained, planAct } from '../../../cli/src/acts/act.js'
import { openStore } from '../../../cli/src/acts/open-store.js'
import { Site } from '../../../cli/src/acts/site.js'
import { startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import { type ActedOnCall, type ActedOnJob, END, LIMIT, LIMITERS } from '../workers/acted-on-jobs.js'

/**
 * An operator reads, blocks, unblocks, resets and exempts keys, with the module of `sluice`, while four processes call on them. Of each
 * key no more is charged than the limit, and once more for each reset.
 */
export const row: Row = {
  number: 53,
  fault: 'acts',
  run: async (share) => {
    const server = await startRedis()
    try {
      return await acted(server, share)
    } finally {
      await server.stop()
    }
  },
}

const PROCESSES = 4
/** Within which an exemption is in force in every process, or no longer. */
const IN_FORCE_MS = 2000
/** Longer than a call takes on a machine that others use too. */
const SHORT_MS = 300
const WHO = { reason: 'a row', by: 'faults' }
const KEYS = ['read', 'banned', 'reset', 'exempt'] as const
type Key = (typeof KEYS)[number]

/** From the end of one act to the beginning of the next, and to the end of that. */
interface Span {
  readonly from: number
  readonly to: number
  readonly done: number
}

async function acted({ host, port }: Address, share: number): Promise<Outcome> {
  const members = await Promise.all(
    Array.from({ length: PROCESSES }, () =>
      startMember('packages/faults/src/workers/acted-on.ts', resolve('.')),
    ),
  )
  const policies = [fixedWindow({ limit: LIMIT, window: '365d' })]
  const limits = Object.keys(LIMITERS).map((name) => ({ name, policies }))
  const site = new Site(await openStore(`redis://${host}:${port}`), limits)
  try {
    const job: ActedOnJob = { redis: { host, port }, keys: KEYS }
    await Promise.all(members.map((each) => each.prepare(job)))
    const spans = Object.fromEntries(KEYS.map((key) => [key, [] as Span[]])) as Record<Key, Span[]>
    // The first ban is of a key that nobody has called on.
    let ended: Promise<(readonly ActedOnCall[])[]> | undefined
    const begun = () =>
      (ended ??= Promise.all(members.map((each) => each.go())) as Promise<(readonly ActedOnCall[])[]>)
    spans.banned.push(await between(site, 'banned', BAN, SHORT_MS, begun))
    const ends = now() + share * 10_000
    await Promise.all([
      repeated(() => read(site), ends),
      repeated(async () => void spans.banned.push(await between(site, 'banned', BAN, SHORT_MS)), ends),
      repeated(async () => void spans.reset.push(await between(site, 'reset', [RESET], SHORT_MS)), ends),
      between(site, 'exempt', EXEMPT, 2 * IN_FORCE_MS).then((span) => spans.exempt.push(span)),
    ])
    await pause(2 * IN_FORCE_MS)
    await site.limitersOf(limits[0]!)[0]!.consume(END, { cost: LIMIT })
    const calls = (await begun()).flat()
    return together(await Promise.all(limits.map(({ name }) => judged(site, name, calls, spans))))
  } finally {
    await site.close()
    await Promise.all(members.map((member) => member.end()))
  }
}

const BAN: readonly ActRequest[] = [
  { act: 'block', duration: '1h', ...WHO },
  { act: 'unblock', ...WHO },
]
const EXEMPT: readonly ActRequest[] = [
  { act: 'exempt', duration: '1h', ...WHO },
  { act: 'remove', ...WHO },
]
const RESET: ActRequest = { act: 'reset', ...WHO }

/** Carries an act out on a key of all limiters. */
async function act(site: Site, key: Key, request: ActRequest | undefined): Promise<void> {
  for (const limits of request ? site.limits : [])
    await (await planAct(site.limitersOf(limits), key, request!)).carryOut()
}

/** Carries one act out, then another after a time, and returns what lies between them. */
async function between(
  site: Site,
  key: Key,
  [first, second]: readonly ActRequest[],
  ms: number,
  onFirst = (): unknown => undefined,
): Promise<Span> {
  await act(site, key, first)
  const from = now()
  onFirst()
  await pause(ms)
  const to = now()
  await act(site, key, second)
  return { from, to, done: now() }
}

/** Reads all that an operator reads of a key, and works acts out that are not carried out, as with --dry-run. */
async function read(site: Site): Promise<void> {
  for (const limits of site.limits) {
    const limiters = site.limitersOf(limits)
    await explained(limiters, 'read')
    for (const request of [...BAN, ...EXEMPT, RESET]) await planAct(limiters, 'read', request)
  }
  for await (const row of site.blocked(new Map())) void row
}

async function repeated(run: () => Promise<void>, until: number): Promise<void> {
  do await run()
  while (now() < until)
}

/**
 * Passes if of each key no more was charged than the limit, and once more for each reset; if what is charged is what the store then
 * says; and if all that was asked between two acts was decided by the first.
 */
async function judged(
  site: Site,
  name: string,
  calls: readonly ActedOnCall[],
  spans: Readonly<Record<Key, readonly Span[]>>,
): Promise<Outcome> {
  const limiters = site.limitersOf(site.limits.find((each) => each.name === name)!)
  const wrong: string[] = []
  const expectNone = (what: string, found: number): void => void (found > 0 && wrong.push(`${found} ${what}`))
  /** The calls on a key that were made from one instant to another. */
  const callsOn = (key: Key, from = -Infinity, to = Infinity): readonly ActedOnCall[] =>
    calls.filter(
      (call) => call.limiter === name && call.key === key && call.beganAt >= from && call.endedAt <= to,
    )
  const counts = await Promise.all(
    KEYS.map(async (key) => {
      const charged = callsOn(key).filter(({ allowed, exempt }) => allowed && !exempt).length
      const used = (await explained(limiters, key)).policies[0]?.used ?? 0
      const times = 1 + (key === 'reset' ? spans.reset.length : 0)
      const isExact = times === 1 ? charged === LIMIT && used === LIMIT : charged > LIMIT && used <= LIMIT
      if (!isExact || charged > LIMIT * times)
        wrong.push(`${charged} charged of ${key}, ${used} used in the end`)
      return `${charged} of ${callsOn(key).length} ${key}`
    }),
  )
  const banned = spans.banned.flatMap(({ from, to }) => callsOn('banned', from, to))
  expectNone('admitted while banned', banned.filter(({ allowed }) => allowed).length)
  const [{ from, to, done }] = spans.exempt as [Span]
  // On a busy machine timers are late by as much as calls are long.
  const inForce = IN_FORCE_MS + calls.reduce((most, each) => Math.max(most, each.endedAt - each.beganAt), 0)
  const during = callsOn('exempt', from + inForce, to)
  expectNone('not exempt two seconds after the act', during.filter(({ exempt }) => !exempt).length)
  const after = callsOn('exempt', done + inForce)
  expectNone('exempt two seconds after its end', after.filter(({ exempt }) => exempt).length)
  if ([banned, during, after].some(({ length }) => length === 0)) wrong.push('no calls between two acts')
  const found = wrong.length === 0 ? `charged ${counts.join(', ')}` : wrong.join('; ')
  const acts = `${spans.banned.length} bans, ${spans.reset.length} resets`
  return { pass: wrong.length === 0, figure: `${name}, ${acts}: ${found}` }
}

/** Milliseconds on the clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6
