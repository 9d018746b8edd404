import { type Arrival, startProvider } from '@sluice/testing'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { type Crew, startCrew } from '../crew.js'
import { type Outcome, percent, type Proof } from '../proof.js'
import { type Kind, kinds, type PeerJob, type PeerReport } from './job.js'

/**
 * What others do with the same work: four processes stay under one limit of a provider that keeps it strictly. Those
 * that cannot share a limit divide it by the number of processes, as people do.
 */
export const proof: Proof = { title: 'peers', timed: true, run }

const [LIMIT, OURS, WINDOW_MS, WORKERS] = [100, 98, 1000, 4]

interface Load {
  readonly title: string
  readonly forMs: number
  /** Of each worker. */
  readonly callers: readonly { readonly callers: number; readonly thinkMs: number }[]
}

const BUSY = { callers: 30, thinkMs: 0 }
const CALM = { callers: 1, thinkMs: 1000 }

const LOADS: readonly Load[] = [
  { title: 'all have work', forMs: 20_000, callers: [BUSY, BUSY, BUSY, BUSY] },
  { title: 'one has most', forMs: 10_000, callers: [BUSY, CALM, CALM, CALM] },
]

async function run(share: number): Promise<Outcome> {
  const crew = startCrew<PeerJob, PeerReport>('packages/outbound/test/proofs/peers/worker.ts')
  const redis = await startRedis()
  const rows: Row[] = []
  for (const load of LOADS) {
    for (const kind of kinds)
      rows.push(await measure(kind, { ...load, forMs: load.forMs * share }, redis, crew))
  }
  await Promise.all([crew.end(), redis.stop()])
  const ours = rows.filter(({ kind }) => kind === 'sluice')
  const divided = rows.findLast(({ kind }) => kind === 'p-queue')!
  return {
    holds: true,
    pass: ours.every(({ calls, used }) => calls.every(({ accepted }) => accepted) && used > divided.used),
    figure:
      `provider ${LIMIT}/s, known to all as ${OURS}/s, ${WORKERS} processes\n` +
      [HEAD, ...rows.map(lineOf)].map((line) => `      ${line}`).join('\n'),
  }
}

interface Row {
  readonly load: string
  readonly kind: Kind
  readonly calls: readonly Arrival[]
  /** Calls a second that were accepted. */
  readonly used: number
  readonly commands: number
  readonly clientsMs: number
  readonly redisMs: number
}

async function measure(
  kind: Kind,
  load: Load,
  redis: RedisServer,
  crew: Crew<PeerJob, PeerReport>,
): Promise<Row> {
  await command(redis, 'FLUSHALL')
  const provider = await startProvider({ limit: LIMIT, windowMs: WINDOW_MS })
  const { host, port } = redis
  const fleet = { kind, redis: { host, port }, limit: OURS, windowMs: WINDOW_MS, workers: WORKERS }
  const jobs = load.callers.map((callers) => ({
    ...fleet,
    origin: provider.origin,
    forMs: load.forMs,
    ...callers,
  }))
  const shift = await crew.start(jobs)
  const before = await usage(redis)
  const startedAt = performance.now()
  const reports = await shift.done
  const after = await usage(redis)
  await crew.rest()
  provider.close()
  // What waits when time is up still goes out.
  const calls = provider.calls.filter(({ at }) => at - startedAt < load.forMs)
  return {
    load: load.title,
    kind,
    calls,
    used: calls.filter(({ accepted }) => accepted).length / (load.forMs / 1000),
    commands: (after.commands - before.commands) / provider.calls.length,
    clientsMs: (1000 * reports.reduce((sum, { cpuMs }) => sum + cpuMs, 0)) / provider.calls.length,
    redisMs: (1000 * (after.cpuMs - before.cpuMs)) / provider.calls.length,
  }
}

/** What Redis did so far: commands that clients sent, not those of scripts, and its time. */
async function usage(redis: RedisServer): Promise<{ commands: number; cpuMs: number }> {
  const [stats, cpu] = await Promise.all([
    command(redis, 'INFO', 'commandstats'),
    command(redis, 'INFO', 'cpu'),
  ])
  const commands = [...stats.matchAll(/cmdstat_(?:eval|evalsha|script\S*):calls=(\d+)/g)]
  const seconds = [...cpu.matchAll(/used_cpu_(?:sys|user):([\d.]+)/g)]
  const sum = (found: RegExpMatchArray[]): number =>
    found.reduce((total, match) => total + Number(match[1]), 0)
  return { commands: sum(commands), cpuMs: 1000 * sum(seconds) }
}

const HEAD = [
  'load'.padEnd(14),
  'limited by'.padEnd(21),
  '429s'.padStart(11),
  'of the limit'.padStart(13),
  'Redis commands a call'.padStart(22),
  'CPU ms per 1,000 calls: clients'.padStart(32),
  'Redis'.padStart(6),
].join('')

function lineOf({ load, kind, calls, used, commands, clientsMs, redisMs }: Row): string {
  const refused = calls.filter(({ accepted }) => !accepted).length
  return [
    load.padEnd(14),
    kind.padEnd(21),
    `${refused} ${percent(refused, calls.length)}`.padStart(11),
    percent(used, LIMIT).padStart(13),
    commands.toFixed(2).padStart(22),
    clientsMs.toFixed(0).padStart(32),
    redisMs.toFixed(0).padStart(6),
  ].join('')
}
