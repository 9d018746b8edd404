// What was wanted of decisions in memory.
import { figureGoal, ratioGoal } from '../figures/goals.js'
import { median } from '@sluice/testing/figures'

/** @typedef {keyof typeof import('./workloads.js').workloads} Workload */

/**
 * @typedef {(name: string, workload: Workload) => number[]} Seen Millions of decisions a second of CPU, in each round.
 */

/**
 * @param {Seen} seen
 * @param {Map<string, number>} bytes
 */
export function goalsOf(seen, bytes) {
  const unit = 'M/s'
  const faster = (/** @type {Workload} */ workload, /** @type {number} */ atLeast, ours = 'consume') => {
    const [path, other] =
      ours === 'consume'
        ? ['Sluice, await consume', 'bare GCRA behind one await']
        : ['Sluice, decide', 'express-rate-limit']
    return ratioGoal(`memory, ${ours}, ${workload}`, seen(path, workload), [other, seen(other, workload)], {
      atLeast,
      unit,
    })
  }
  const passed = (/** @type {Workload} */ workload) => {
    const rivals = ['rate-limiter-flexible', 'koa-ratelimit', '@nestjs/throttler', 'limiter']
    const [best = ''] = rivals.toSorted((a, b) => median(seen(b, workload)) - median(seen(a, workload)))
    const path = `memory, consume, ${workload}: the fastest of ${rivals.length} peers`
    return ratioGoal(path, seen('Sluice, await consume', workload), [best, seen(best, workload)], {
      atLeast: 1,
      unit,
    })
  }
  return [
    faster('one hot key', 0.8),
    faster('100,000 keys', 0.85),
    passed('one hot key'),
    passed('100,000 keys'),
    faster('one hot key', 1.1, 'decide'),
    faster('100,000 keys', 1.2, 'decide'),
    figureGoal('memory, heap per key beside its text, 1 M keys', [bytes.get('Sluice, decide') ?? NaN], {
      atMost: 75,
      unit: 'B',
    }),
    ratioGoal(
      'memory, three policies, 10,000 keys',
      seen('Sluice, three policies', '10,000 keys'),
      ['one policy', seen('Sluice, await consume', '10,000 keys')],
      { atLeast: 0.6, unit },
    ),
  ]
}
