// npm run verify -- simulation [--seed N | --minutes N | --schedules N | --mistakes [TEXT]]: plans from one seed after the other, or one.
// Exit 1 where a law is broken.
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { bundle, type Change } from './bundle.js'
import { judge } from './laws.js'
import { draw, type Plan } from './plan.js'
import type { Program } from './process.js'
import { shrink } from './shrink.js'
import { type History, simulate } from './simulation.js'
import { Tally } from './tally.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '1' },
    schedules: { type: 'string', default: 'Infinity' },
    mistakes: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    whole: { type: 'boolean', default: false },
    digests: { type: 'boolean', default: false },
  },
})
/** Calls after which a mistake counts as missed. */
const MOST_CALLS = Number(process.env['MOST'] ?? 20_000)

const say = (line: string): void => void process.stdout.write(`${line}\n`)
process.exitCode = (await main()) ? 0 : 1
process.exit()

async function main(): Promise<boolean> {
  if (values.mistakes) return findMistakes(values.only)
  const program = await bundle()
  if (values.seed !== undefined) return runOne(draw(Number(values.seed)), program)
  return runMany(Number(values.from), program)
}

/** Runs seeds one after the other until the time is over, and prints what was done. */
async function runMany(from: number, program: Program): Promise<boolean> {
  const tally = new Tally()
  const digest = createHash('sha256')
  const end = performance.now() + Number(values.minutes) * 60_000
  const most = Number(values.schedules)
  let isSound = true
  for (let seed = from; seed < from + most && (performance.now() < end || values.digests); seed++) {
    const history = await simulate(draw(seed), program)
    const { broken, checked } = judge(history)
    digest.update(history.world.digest())
    tally.add(history, checked)
    for (const [law, breach] of broken) {
      isSound = false
      say(`seed ${seed} breaks "${law.name}" (${law.source}): ${breach}`)
    }
  }
  say(values.digests ? digest.digest('hex') : tally.report())
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

/** Plants each mistake of `verify -- sabotage` that the bundle would run, and looks for it by seeds in their order. */
async function findMistakes(only: string): Promise<boolean> {
  const { plantable } = await import('./mistakes.js')
  let [found, all] = [0, 0]
  for (const mistake of await plantable()) {
    if (!`${mistake.file} ${mistake.mistake}`.includes(only)) continue
    all++
    const how = await find(mistake)
    if (how) found++
    say(`${how ? 'found ' : 'MISSED'}  ${mistake.mechanism}: ${mistake.mistake}  ${how ?? ''}`)
  }
  say(`${found} of ${all} mistakes found`)
  return found >= 0.8 * all
}

/** How a mistake is found: the law, the seed and the calls that it took. */
async function find(mistake: Change): Promise<string | undefined> {
  const program = await bundle([mistake])
  let calls = 0
  for (let seed = 1; calls < MOST_CALLS; seed++) {
    try {
      const history = await simulate(draw(seed), program)
      calls += history.records.length
      const [first] = judge(history).broken
      if (first) return `"${first[0].name}" by seed ${seed}, ${calls} calls: ${first[1].slice(0, 160)}`
    } catch (error) {
      throw new Error(`${mistake.file}, seed ${seed}`, { cause: error })
    }
  }
  return undefined
}
