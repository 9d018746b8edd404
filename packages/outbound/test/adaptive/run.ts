import { type Scene, scenes, type Span } from './scenes.js'
import type { Figures } from './tally.js'

/*
 * Simulated fleets of four beside providers whose limits nobody knows and which halve midway, under the adaptive limits and
 * under plain AIMD; then a day without a change, whose end must be like its beginning. npm run bench -- adaptive
 */
const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1)
const TEN_MINUTES: Span = { forMs: 600_000, halvesAt: 300_000 }
const DAY: Span = { forMs: 86_400_000, halvesAt: Infinity, parts: 24 }
/** In points of percent, and for latency in percent, between the means of hours 2 to 7 and of the last six. */
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

console.log(
  '\na day without a change: the mean of hours 2 to 7, and of the last six; each hour within the bars',
)
for (const scene of scenes) {
  const hours = scene.adaptive(1, DAY)
  const mean = (figure: keyof Figures, part: readonly Figures[]): number =>
    part.reduce((sum, hour) => sum + hour[figure], 0) / part.length
  const [early, late] = [hours.slice(1, 7), hours.slice(-6)]
  const change = (figure: keyof Figures): number => mean(figure, late) - mean(figure, early)
  const isSteady =
    100 * Math.abs(change('used')) <= DRIFT.used &&
    100 * Math.abs(change('refused')) <= DRIFT.refused &&
    100 * Math.abs(change('latencyMs') / mean('latencyMs', early)) <= DRIFT.latencyMs &&
    hours
      .slice(1)
      .every(({ used, refused }) => 100 * used >= scene.bar.used && 100 * refused <= scene.bar.refused)
  const both = (figure: keyof Figures, show: (value: number) => string): string =>
    `${show(mean(figure, early))} to ${show(mean(figure, late))}`
  const worst = Math.min(...hours.slice(1).map(({ used }) => used))
  console.log(
    `${scene.title.padEnd(33)}used ${both('used', percent)} (worst hour ${percent(worst)}); refused ` +
      `${both('refused', percent)}; latency ${both('latencyMs', (ms) => ms.toFixed(0))} ms: ${isSteady ? 'no drift' : 'DRIFTS'}`,
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
