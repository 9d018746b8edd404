import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import { createQueue } from '../../src/index.js'
import type { Outcome, Proof } from './proof.js'

/** createQueue beside bottleneck, p-queue and p-throttle: calls a second, CPU a call, and what a call that waits takes. */
export const proof: Proof = { title: 'queue', timed: true, run }

const [AT_ONCE, WAITING, GENEROUS, WARM] = [100, 100_000, 1_000_000_000, 100]
const ROUNDS = 3

type Add = (call: () => Promise<void>) => Promise<unknown>

interface Contender {
  readonly add: Add
  /** Ends it, with the calls that wait. */
  end(): void
}

interface Library {
  /** Of a burst, so that each takes about as long. */
  readonly calls: number
  /** At most so many calls are under way; those that only know rates take an interval of milliseconds for each. */
  open(atOnce: number): Contender
}

async function run(): Promise<Outcome> {
  const libraries = await all()
  const figures = []
  for (const [name, library] of Object.entries(libraries)) {
    const bursts = []
    for (let i = 0; i < ROUNDS; i++) bursts.push(await burst(library))
    const [best] = bursts.toSorted((a, b) => b.perSecond - a.perSecond)
    figures.push({ name, ...best!, bytes: await bytesWaiting(library) })
  }
  const [own, bottleneck] = [figures[0]!, figures.find(({ name }) => name === 'bottleneck')!]
  const better = own.perSecond > bottleneck.perSecond && own.cpuUs < bottleneck.cpuUs
  const shown = figures.map(
    ({ name, perSecond, cpuUs, bytes }) =>
      `${name} ${Math.round(perSecond).toLocaleString('en')} calls a second, ${cpuUs.toFixed(1)} us of CPU each, ${Math.round(bytes).toLocaleString('en')} B waiting`,
  )
  return { holds: better, pass: better, figure: shown.join('; ') }
}

async function burst({
  calls,
  open,
}: Library): Promise<{ readonly perSecond: number; readonly cpuUs: number }> {
  const { add, end } = open(AT_ONCE)
  const call = async (): Promise<void> => {}
  for (let i = 0; i < WARM; i++) await add(call)
  const [cpu, start] = [process.cpuUsage(), performance.now()]
  await Promise.all(Array.from({ length: calls }, () => add(call)))
  const [{ user, system }, ms] = [process.cpuUsage(cpu), performance.now() - start]
  end()
  return { perSecond: (1000 * calls) / ms, cpuUs: (user + system) / calls }
}

/** Behind a first call that does not end. */
async function bytesWaiting({ open }: Library): Promise<number> {
  const { add, end } = open(1)
  add(() => new Promise(() => {})).catch(() => {})
  await rest()
  const before = bytesInUse()
  const call = async (): Promise<void> => {}
  for (let i = 0; i < WAITING; i++) add(call).catch(() => {})
  await rest()
  const bytes = (bytesInUse() - before) / WAITING
  end()
  await rest()
  return bytes
}

const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 200))

async function all(): Promise<Readonly<Record<string, Library>>> {
  const [{ default: Bottleneck }, { default: PQueue }, { default: pThrottle }] = await Promise.all([
    import('bottleneck'),
    import('p-queue'),
    import('p-throttle'),
  ])
  const limits = { maxQueue: 1_000_000, maxWait: '1d' } as const
  return {
    createQueue: {
      calls: 20_000,
      open(atOnce) {
        const limiter = createLimiter({ policies: [gcra({ limit: GENEROUS, window: '1s' })] })
        const queue = createQueue({ limiter, semaphore: createSemaphore({ limit: atOnce }), ...limits })
        return { add: (call) => queue.run(call), end: () => void queue.clear() }
      },
    },
    bottleneck: {
      calls: 2000,
      open(atOnce) {
        const limiter = new Bottleneck({ maxConcurrent: atOnce })
        return { add: (call) => limiter.schedule(call), end: () => void limiter.stop() }
      },
    },
    'p-queue': {
      calls: 20_000,
      open(atOnce) {
        const queue = new PQueue({ concurrency: atOnce })
        return { add: (call) => queue.add(call), end: () => queue.clear() }
      },
    },
    'p-throttle': {
      calls: 20_000,
      open(atOnce) {
        const controller = new AbortController()
        const limit = atOnce === 1 ? 1 : GENEROUS
        const throttled = pThrottle({ limit, interval: 1000, signal: controller.signal })(
          (call: () => Promise<void>) => call(),
        )
        return { add: (call) => throttled(call), end: () => controller.abort(new Error('over')) }
      },
    },
  }
}
