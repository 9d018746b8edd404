import { type Scene, scenes, type Span } from './scenes.js'
import type { Figures } from './tally.js'

/*
 * Simulated fleets of four beside providers whose limits nobody knows and which halve midway, under the adaptive limits and
 * under plain AIMD; then a day without a change, whose hours must be alike. npm run bench -- adaptive
 */
const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1)
const TEN_MINUTES: Span = { forMs: 600_000, halvesAt: 300_000 }
const DAY: Span = { forMs: 86_400_000, halvesAt: Infinity, parts: 24 }
/** In points of percent, and for latency in percent, between the second hour of a day and each later one. */
const DRIFT = { used: 2, refused: 0.5, latencyMs: 15 }

let missed = 0

console.log('four processes, ten minutes, the limit halves midway; 20 seeds: mean (worst)')
console.log(
  `${'provider'.padEnd(33)}${'control'.padEnd(10)}${'used'.padEnd(20)}${'refused'.padEnd(20)}latency`,
)
for (const scene of scenes) {
  const ours = halved(scene, 'adaptive')
  const plain = halved(scene, 'aimd')
  const { used, refused } = scene.bar
  const isMet = 100 * ours.mean.used >= used && 100 * ours.mean.refused <= refused
  print(scene.title, 'adaptive', ours, `bar ${used} %, ${refused} %: ${isMet ? 'met' : 'MISSED'}`)
  print('', 'AIMD', plain, '')
  if (!isMet) missed++
}

console.log('\na day without a change: the second hour, the last, and the furthest from the second')
for (const scene of scenes) {
  const hours = scene.adaptive(1, DAY)
  const second = hours[1]!
  const later = hours.slice(2)
  const furthest = (figure: keyof Figures): Figures =>
    later.reduce((far, hour) =>
      Math.abs(hour[figure] - second[figure]) > Math.abs(far[figure] - second[figure]) ? hour : far,
    )
  const isSteady =
    100 * Math.abs(furthest('used').used - second.used) <= DRIFT.used &&
    100 * Math.abs(furthest('refused').refused - second.refused) <= DRIFT.refused &&
    100 * Math.abs(furthest('latencyMs').latencyMs / second.latencyMs - 1) <= DRIFT.latencyMs
  const list = (figure: keyof Figures, show: (value: number) => string): string =>
    [second, later.at(-1)!, furthest(figure)].map((hour) => show(hour[figure])).join(', ')
  console.log(
    `${scene.title.padEnd(33)}used ${list('used', percent)}; refused ${list('refused', percent)}; ` +
      `latency ${list('latencyMs', (ms) => ms.toFixed(0))} ms: ${isSteady ? 'no drift' : 'DRIFTS'}`,
  )
  if (!isSteady) missed++
}
process.exitCode = missed === 0 ? 0 : 1

interface Summary {
  readonly mean: Figures
  readonly worst: Figures
}

function halved(scene: Scene, control: 'adaptive' | 'aimd'): Summary {
  const runs = SEEDS.map((seed) => scene[control](seed, TEN_MINUTES)[0]!)
  const all = (figure: keyof Figures): readonly number[] => runs.map((run) => run[figure])
  const mean = (figure: keyof Figures): number =>
    all(figure).reduce((sum, value) => sum + value, 0) / runs.length
  return {
    mean: { used: mean('used'), refused: mean('refused'), latencyMs: mean('latencyMs') },
    worst: {
      used: Math.min(...all('used')),
      refused: Math.max(...all('refused')),
      latencyMs: Math.max(...all('latencyMs')),
    },
  }
}

function print(title: string, control: string, { mean, worst }: Summary, verdict: string): void {
  const both = (figure: 'used' | 'refused'): string =>
    `${percent(mean[figure])} (${percent(worst[figure])})`.padEnd(20)
  console.log(
    `${title.padEnd(33)}${control.padEnd(10)}${both('used')}${both('refused')}` +
      `${`${mean.latencyMs.toFixed(0)} ms`.padEnd(9)}${verdict}`,
  )
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`
}
