// npm run bench -- all|memory|mixed|redis|http|by-hand|scale|cluster [--rounds N] [--only REGEXP] [--large] [--dry]
// npm run bench -- pages: writes docs/benchmarks from the figures that are there, and measures nothing.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { cluster } from './cluster/part.js'
import { isMeasured, judged, pooled } from './figures/goals.js'
import { loadNow, machine, machineAtRest, versions } from './figures/machine.js'
import { ENOUGH_ROUNDS } from './figures/verdict.js'
import { byHand } from './http/by-hand.js'
import { http } from './http/part.js'
import { memory, mixed } from './memory/part.js'
import { redis } from './redis/part.js'
import { load, pageOf, publish, publishOverview, save } from './report.js'
import { scale } from './scale/part.js'

/** @typedef {import('./report.js').Part} Part */

/** With the rounds that each takes. @type {readonly (readonly [Part, number])[]} */
const parts = [
  [memory, ENOUGH_ROUNDS],
  [mixed, ENOUGH_ROUNDS],
  [redis, ENOUGH_ROUNDS],
  [http, ENOUGH_ROUNDS],
  [byHand, ENOUGH_ROUNDS],
  [scale, 3],
  [cluster, ENOUGH_ROUNDS],
]

/** Of what is not shown. */
const REPETITIONS = 2

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
    const say = (/** @type {string} */ line) => void process.stderr.write(`${part.name}: ${line}\n`)
    const before = values.dry ? loadNow() : await machineAtRest(say)
    const start = performance.now()
    const wanted = (/** @type {string} */ name) => only.test(name)
    const figures = await part.measure({
      rounds,
      wanted,
      goalsOnly: false,
      large: values.large ?? false,
      say,
    })
    if (values.only !== undefined) figures.goals = figures.goals.filter(isMeasured)
    for (const goal of figures.goals)
      if (!isMeasured(goal)) throw new Error(`nothing was measured of: ${goal.path}`)
    if (rounds >= ENOUGH_ROUNDS) await repeatUnclear(part, figures, { rounds, before, say })
    const run = {
      date: new Date().toISOString().slice(0, 10),
      machine: machine(),
      versions: versions(part.packages),
      load: before,
      rounds,
      seconds: Math.round((performance.now() - start) / 1000),
    }
    const record = { ...figures, run }
    process.stdout.write(`${pageOf(part, record)}\n\n`)
    if (!values.dry) {
      save(part.name, record)
      publish(part, record)
    }
  }
  if (!values.dry) publishOverview()
}

/** Writes every page and chart from the figures of the last runs. */
export function writePages() {
  for (const [part] of parts) {
    const record = load(part.name)
    if (record) publish(part, record)
  }
  publishOverview()
}

/**
 * Places of the pages, in the folder of a repository, that are not what their figures print.
 * @public Read by the checks of the site, which has dependencies of its own.
 * @param {string} root
 */
export function stalePages(root) {
  return parts.flatMap(([part]) => {
    const record = load(part.name)
    if (!record) return []
    const printed = `${pageOf(part, record)}\n`.split('\n')
    const written = readFileSync(`${root}/docs/benchmarks/${part.name}.md`, 'utf8').split('\n')
    const at = written.findIndex((line, i) => line !== printed[i])
    return at < 0 ? [] : [`docs/benchmarks/${part.name}.md:${at + 1}`]
  })
}

/**
 * Adds rounds to the goals of which the rounds have not shown whether they are met.
 * @param {Part} part
 * @param {import('./report.js').Figures} figures
 * @param {{ rounds: number, before: number, say: (line: string) => void }} run
 */
async function repeatUnclear(part, figures, { rounds, before, say }) {
  for (let repetition = 1; repetition <= REPETITIONS; repetition++) {
    const unclear = figures.goals.filter((goal) => judged(goal, before).verdict === 'not shown')
    if (unclear.length === 0) return
    say(`${unclear.length} goals are not shown, repetition ${repetition}`)
    const needed = new Set(unclear.flatMap(({ contenders }) => contenders))
    const wanted = (/** @type {string} */ name) => needed.has(name)
    const again = await part.measure({ rounds, wanted, goalsOnly: true, large: false, say })
    figures.goals = figures.goals.map((goal) => {
      const more = unclear.includes(goal) && again.goals.find(({ path }) => path === goal.path)
      return more && isMeasured(more) ? pooled(goal, more) : goal
    })
  }
}
