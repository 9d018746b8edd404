import { randomFrom } from '../../../packages/harness/src/figures/random.js'
import type { Column, Scenario, Typed } from '../scenario.js'

/** A scenario that can be run, of any kind of traffic and limits; the same for the same seed. */
export function randomScenario(seed: number): Scenario {
  const random = randomFrom(seed)
  const whole = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  const one = <T>(values: readonly T[]): T => values[whole(0, values.length - 1)]!
  const columns = Array.from({ length: whole(1, 4) }, () => randomColumn(whole, one))
  const kind = one(['even', 'poisson', 'edge', 'storm', 'day', 'list'])
  const traffic = {
    kind,
    span: one(['2s', '10s', 30_000, '90s']),
    cost: one([1, 1, 1, 3, 0]),
    keys: one([1, 1, 2, 7]),
    seed: whole(0, 99),
    rate: one([0.5, 3, 7.25, 20]),
    window: one(['1s', '2s']),
    burst: whole(1, 15),
    clients: whole(1, 40),
    obey: one([0, 50, 100]),
    retry: one(['100ms', '700ms']),
    peak: whole(1, 5),
    ...(random() < 0.3 && { real: whole(0, 4), takes: one(['50ms', '3s']) }),
  }
  const times = Array.from({ length: whole(1, 60) }, () => whole(0, 20_000)).sort((a, b) => a - b)
  const list = times
    .map((at) => (random() < 0.5 ? `${at}` : `${at} ${whole(0, 4)} ${whole(1, 3)}`))
    .join('\n')
  const view = random() < 0.3 ? { from: 500, to: 1900, key: 1 } : {}
  return { settings: { ...traffic, ...(kind === 'list' && { list }), ...view }, columns }
}

type Whole = (least: number, most: number) => number
type One = <T>(values: readonly T[]) => T

function randomColumn(whole: Whole, one: One): Column {
  const policies = Array.from({ length: one([1, 1, 1, 2, 3]) }, (_, i) => ({
    ...randomPolicy(whole, one),
    name: `policy ${i + 1}`,
  }))
  const way = one(['', '', 'wait', 'penalty', 'leases'])
  if (way === 'wait') return { policies, wait: { maxWait: one(['500ms', '5s', 30_000]) } }
  if (way === 'penalty')
    return { policies, penalty: { after: whole(1, 4), block: one(['500ms', '5s']), factor: one([1, 2]) } }
  const lent = {
    policies: [{ algorithm: 'slidingLog', limit: whole(20, 60), window: '10s' }],
    leases: { ttl: '1s', size: 5, processes: 3 },
  }
  return way === 'leases' ? lent : { policies }
}

function randomPolicy(whole: Whole, one: One): Readonly<Record<string, Typed>> {
  const algorithm = one(['slidingLog', 'gcra', 'tokenBucket', 'leakyBucket', 'slidingWindow', 'fixedWindow'])
  const numbers = { algorithm, limit: whole(1, 30), window: one(['1s', '2s', 5000, '10s']) }
  const more: Readonly<Record<string, Readonly<Record<string, Typed>>>> = {
    gcra: { burst: whole(1, 12) },
    tokenBucket: { capacity: whole(1, 12), refill: one(['greedy', 'interval']) },
    leakyBucket: { capacity: whole(1, 12) },
    slidingWindow: { buckets: one([1, 5, 10]), count: one(['whole', 'weighted']) },
  }
  return { ...numbers, ...more[algorithm] }
}
