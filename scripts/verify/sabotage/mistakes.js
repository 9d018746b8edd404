import { readFileSync } from 'node:fs'
import { algorithmsMistakes } from './mistakes/algorithms.js'
import { limiterMistakes } from './mistakes/limiter.js'
import { machineMistakes } from './mistakes/machine.js'
import { memoryMistakes } from './mistakes/memory.js'
import { penaltyMistakes } from './mistakes/penalties.js'
import { redisMistakes } from './mistakes/redis.js'
import { resilienceMistakes } from './mistakes/resilience.js'

/**
 * One mechanism, broken: `text` stands exactly once in `file`, and `broken` takes its place.
 * @typedef {{ mechanism: string, mistake: string, row: number, file: string, text: string, broken: string }} Mistake
 */

/** @type {readonly Mistake[]} */
export const mistakes = [
  ...algorithmsMistakes,
  ...memoryMistakes,
  ...redisMistakes,
  ...resilienceMistakes,
  ...machineMistakes,
  ...penaltyMistakes,
  ...limiterMistakes,
]

/**
 * What keeps mistakes from being made: each text that does not stand exactly once in its file.
 * @param {readonly Mistake[]} among
 * @returns {string[]}
 */
export function misplaced(among = mistakes) {
  return among.flatMap(({ file, text }) => {
    const found = readFileSync(file, 'utf8').split(text).length - 1
    return found === 1 ? [] : [`${file} must hold ${JSON.stringify(text)} once, got ${found}`]
  })
}
