import { startProvider } from '@sluice/testing'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { Aimd } from '../../adaptive/aimd.js'
import { runConcurrency } from '../../adaptive/concurrency-fleet.js'
import { type Crew, startCrew } from '../crew.js'
import { type Outcome, percent, type Proof } from '../proof.js'
import { type AdaptiveJob, type AdaptiveReport, type Kind, kinds } from './job.js'

/**
 * Four processes and a provider whose limit they do not know, beside the same fleet that knows it, and what others do. The AIMD
 * of the simulation is also run by this fleet: both must agree, or the figures of the simulation say nothing.
 */
export const proof: Proof = { title: 'adaptive', timed: true, run }

const [WORKERS, CALLERS, AT_ONCE, LATENCY_MS] = [4, 30, 20, 100]
const [SEARCH_MS, REST_MS] = [90_000, 8000]
/** Fleets of AIMD fall into step or do not, by how they start: between one start and another lie six points of refusals. */
const STARTS = 9
/** Of what the fleet gets that knows the limit, and of the calls. */
const [LEAST_USED, MOST_REFUSED] = [0.85, 0.04]
/** A call and its reply each take between these times through `fetch`, both processes and the loopback: refusals are back after 1 ms. */
const LOOPBACK_MS = [0.25, 1] as const
const SEEDS = 20
/** By how much the simulation may differ. */
const [USED_APART, REFUSED_APART] = [0.05, 0.02]

interface Scene {
  readonly title: string
  readonly unknown: AdaptiveJob['unknown']
  readonly limit: number
  readonly states: boolean
}

const SCENES: readonly Scene[] = [
  { title: '100 a second, Retry-After', unknown: 'rate', limit: 100, states: true },
  { title: '100 a second, without', unknown: 'rate', limit: 100, states: false },
  { title: '20 at once', unknown: 'calls at once', limit: AT_ONCE, states: false },
]

interface Row {
  readonly scene: Scene
  readonly kind: Kind
  readonly used: number
  readonly refused: number
  readonly unserved: number
}

async function run(share: number): Promise<Outcome> {
  const crew = startCrew<AdaptiveJob, AdaptiveReport>('packages/outbound/test/proofs/adaptive/worker.ts')
  const redis = await startRedis()
  const rows: Row[] = []
  for (const scene of SCENES) {
    for (const kind of kinds.filter((each) => scene.unknown === 'calls at once' || each !== 'AIMD')) {
      // A search takes its time; the others do the same all the time.
      const forMs = (kind === 'adaptive' ? SEARCH_MS : REST_MS) * share
      const starts: Row[] = []
      while (starts.length < (kind === 'AIMD' ? STARTS : 1))
        starts.push(await measure(scene, kind, forMs, redis, crew))
      rows.push(meanOf(starts))
      console.log(lineOf(rows.at(-1)!, rows))
    }
  }
  await Promise.all([crew.end(), redis.stop()])
  const isMet = SCENES.every((scene) => {
    const [known, ours] = ['known', 'adaptive'].map((kind) => rowOf(rows, scene, kind as Kind))
    return ours!.used >= LEAST_USED * known!.used && ours!.refused <= MOST_REFUSED && ours!.unserved === 0
  })
  const real = rowOf(rows, SCENES.at(-1)!, 'AIMD')
  const simulated = simulatedAimd(REST_MS * share)
  const agrees =
    Math.abs(real.used - simulated.used) <= USED_APART &&
    Math.abs(real.refused - simulated.refused) <= REFUSED_APART
  return {
    holds: true,
    pass: isMet && agrees,
    figure:
      `${WORKERS} processes, rows above; AIMD at 20 at once simulated: used ${percent(simulated.used, 1)}, ` +
      `refused ${percent(simulated.refused, 1)}, ${agrees ? 'as measured' : 'NOT as measured'}`,
  }
}

function rowOf(rows: readonly Row[], scene: Scene, kind: Kind): Row {
  return rows.find((row) => row.scene === scene && row.kind === kind)!
}

async function measure(
  scene: Scene,
  kind: Kind,
  forMs: number,
  redis: RedisServer,
  crew: Crew<AdaptiveJob, AdaptiveReport>,
): Promise<Row> {
  await command(redis, 'FLUSHALL')
  const { unknown, limit, states } = scene
  const provider = await startProvider(
    unknown === 'rate'
      ? { limit, windowMs: 1000, states }
      : { limit: Infinity, windowMs: 1000, atOnce: limit, latencyMs: LATENCY_MS, states },
  )
  const { host, port } = redis
  const { origin } = provider
  const job: AdaptiveJob = { kind, unknown, limit, redis: { host, port }, origin, callers: CALLERS, forMs }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const startedAt = performance.now()
  const reports = await shift.done
  await crew.rest()
  provider.close()
  // What waits when time is up still goes out.
  const calls = provider.calls.filter(({ at }) => at - startedAt < forMs)
  const served = calls.filter(({ accepted }) => accepted).length
  const could = unknown === 'rate' ? (limit * forMs) / 1000 : (limit * forMs) / LATENCY_MS
  return {
    scene,
    kind,
    used: served / could,
    refused: 1 - served / calls.length,
    unserved: reports.reduce((sum, { unserved }) => sum + unserved, 0),
  }
}

function meanOf(rows: readonly Row[]): Row {
  const sum = (of: 'used' | 'refused' | 'unserved'): number => rows.reduce((all, row) => all + row[of], 0)
  const [used, refused] = [sum('used') / rows.length, sum('refused') / rows.length]
  return { ...rows[0]!, used, refused, unserved: sum('unserved') }
}

/** The mean of SEEDS fleets that start together, as this one does, and whose calls stay on one machine. */
function simulatedAimd(forMs: number): { readonly used: number; readonly refused: number } {
  const scene = {
    limit: AT_ONCE,
    queue: 0,
    serviceMs: LATENCY_MS,
    spread: 0,
    wayMs: LOOPBACK_MS,
    startMs: 0,
    workers: WORKERS,
    halvesAt: Infinity,
    forMs,
  }
  const control = (now: () => number): Aimd => new Aimd({ min: 1, initial: 4, max: CALLERS }, now)
  const fleets = Array.from({ length: SEEDS }, (_, i) => runConcurrency(scene, i + 1, control)[0]!)
  const mean = (of: 'used' | 'refused'): number => fleets.reduce((sum, fleet) => sum + fleet[of], 0) / SEEDS
  return { used: mean('used'), refused: mean('refused') }
}

function lineOf({ scene, kind, used, refused, unserved }: Row, rows: readonly Row[]): string {
  const known = rowOf(rows, scene, 'known').used
  return (
    `      ${scene.title.padEnd(27)}${kind.padEnd(15)}used ${percent(used, 1).padStart(7)}, ` +
    `${percent(used, known).padStart(7)} of known; refused ${percent(refused, 1).padStart(6)}; unserved ${unserved}`
  )
}
