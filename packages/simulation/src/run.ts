// npm run verify -- simulation [--seed N | --kept | --minutes N [--least N] | --schedules N | --mistakes [--only TEXT] [--write]]:
// plans from one seed after the other, or one, or planted mistakes.
// Exit 1 where a law is broken.
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { bundle, FILENAME } from './bundle.js'
import { startCoverage } from './coverage.js'
import { KEPT } from './kept.js'
import { judge } from './laws.js'
import { findMistakes } from './mistakes.js'
import { draw, type Plan } from './plan.js'
import type { Program } from './process.js'
import { shrink } from './shrink.js'
import { type History, simulate } from './simulation.js'
import { Tally } from './tally.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    kept: { type: 'boolean', default: false },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '1' },
    schedules: { type: 'string' },
    least: { type: 'string', default: '1' },
    mistakes: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
    whole: { type: 'boolean', default: false },
    digests: { type: 'boolean', default: false },
  },
})
const say = (line: string): void => void process.stdout.write(`${line}\n`)
process.exitCode = (await main()) ? 0 : 1
process.exit()

async function main(): Promise<boolean> {
  if (values.mistakes) return findMistakes(values.only, values.write, say)
  if (values.seed !== undefined) return runOne(draw(numberOf('seed')), await bundle())
  return values.kept ? runKept(await bundle()) : runMany(numberOf('from'))
}

/** Runs seeds one after the other until the time is over, and so many at least, and prints what was done. */
async function runMany(from: number): Promise<boolean> {
  const covered = values.digests ? undefined : await startCoverage(FILENAME)
  const program = await bundle()
  const tally = new Tally()
  const digest = createHash('sha256')
  const end = performance.now() + numberOf('minutes') * 60_000
  const most = values.schedules === undefined ? Infinity : numberOf('schedules')
  const least = values.digests ? most : numberOf('least')
  let isSound = true
  // To take down the stack of each error is slow, and a seed that fails is run again.
  Error.stackTraceLimit = 0
  for (let seed = from; seed < from + most && (seed < from + least || performance.now() < end); seed++) {
    const began = performance.now()
    const history = await simulate(draw(seed), program)
    const { broken, checked } = judge(history)
    digest.update(history.world.digest())
    tally.add(history, checked, performance.now() - began)
    for (const [law, breach] of broken) {
      isSound = false
      say(`seed ${seed} breaks "${law.name}" (${law.source}): ${breach}`)
    }
  }
  say(
    covered
      ? [tally.report(), 'what was run of core', ...(await covered())].join('\n')
      : digest.digest('hex'),
  )
  return isSound
}

/** The number that an option gives. Throws where it is not whole and at least 1, as no plan would be run then. */
function numberOf(option: 'seed' | 'from' | 'minutes' | 'schedules' | 'least'): number {
  const number = Number(values[option])
  if (Number.isSafeInteger(number) && number >= 1) return number
  throw new Error(`--${option} must be a whole number of at least 1, got ${JSON.stringify(values[option])}`)
}

/** Runs the plans that once broke a law. */
async function runKept(program: Program): Promise<boolean> {
  let isSound = true
  for (const [seed, what] of Object.entries(KEPT)) {
    say(what)
    if (!(await runOne(draw(Number(seed)), program))) isSound = false
  }
  return isSound
}

/** Runs one plan, and where it breaks a law, prints a smaller one that still does, with its trace. */
async function runOne(plan: Plan, program: Program): Promise<boolean> {
  const history = await simulate(plan, program)
  const [first] = judge(history).broken
  say(`seed ${plan.seed}: ${describe(history)}, digest ${history.world.digest()}`)
  if (!first) return true
  const [law, breach] = first
  say(`breaks "${law.name}" (${law.source}): ${breach}`)
  const small = values.whole ? plan : await shrink(plan, program, law)
  const again = await simulate(small, program)
  const found = judge(again).broken.find(([other]) => other === law)
  say(`${small.items.length} of ${plan.items.length} events are left: ${found?.[1]}`)
  say(again.world.lines(values.whole ? 4000 : 400))
  return false
}

function describe({ records, faults, world }: History): string {
  return `${records.length} calls, ${world.steps} steps, ${faults.map(({ fault }) => fault).join(', ')}`
}
