// npm run bench -- all|memory|redis|http|scale [--rounds N] [--only REGEXP] [--large] [--dry]
import { parseArgs } from 'node:util'
import { loadNow } from './figures/machine.js'
import { http } from './http/part.js'
import { memory } from './memory/part.js'
import { redis } from './redis/part.js'
import { pageOf, publish } from './report.js'
import { scale } from './scale/part.js'

/** @typedef {import('./report.js').Part} Part */

/** With the rounds that each takes to be steady. @type {readonly (readonly [Part, number])[]} */
const parts = [
  [memory, 5],
  [redis, 7],
  [http, 5],
  [scale, 3],
]

/**
 * Measures the built packages beside others, prints a line for every goal, and writes docs/benchmarks unless --dry is
 * given.
 * @param {readonly string[]} args
 */
export async function measureParts(args) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      only: { type: 'string' },
      large: { type: 'boolean' },
      dry: { type: 'boolean' },
    },
  })
  const names = parts.map(([{ name }]) => name)
  const unknown = positionals.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`the parts are ${names.join(', ')}, got ${unknown}`)

  const only = new RegExp(values.only ?? '')
  if (values.only !== undefined) values.dry = true // a page without some is none

  for (const [part, usual] of parts) {
    if (positionals.length > 0 && !positionals.includes(part.name)) continue
    const rounds = Number(values.rounds ?? usual)
    const load = loadNow()
    const start = performance.now()
    const say = (/** @type {string} */ line) => void process.stderr.write(`${part.name}: ${line}\n`)
    const wanted = (/** @type {string} */ name) => only.test(name)
    const figures = await part.measure({ rounds, wanted, large: values.large ?? false, say })
    if (values.only !== undefined) figures.goals = figures.goals.filter(isMeasured)
    for (const goal of figures.goals)
      if (!isMeasured(goal)) throw new Error(`nothing was measured of: ${goal.path}`)
    const page = pageOf(part, figures, { rounds, load, seconds: (performance.now() - start) / 1000 })
    process.stdout.write(`${page}\n\n`)
    if (!values.dry) publish(part, page, figures)
  }
}

/** @param {import('./figures/goals.js').Goal} goal */
function isMeasured({ value }) {
  return Number.isFinite(value)
}
