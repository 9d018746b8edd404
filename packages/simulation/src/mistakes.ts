import { build } from 'esbuild'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type * as sabotage from '../../../scripts/verify/sabotage/mistakes.js'
import { bundle, type Change, OPTIONS } from './bundle.js'
import type { Law } from './law.js'
import { judge } from './laws.js'
import { draw, EACH_WITH_PAIRS, type Fault, type Plan } from './plan.js'
import type { Program } from './process.js'
import { shrink } from './shrink.js'
import { simulate } from './simulation.js'

/** Mistakes in sources of the bundle that no simulated process can run into, by file or mechanism, and why. */
const NOT_RUN: readonly (readonly [where: RegExp, why: string])[] = [
  [/\/redis\/(?:clients|connection)\/|hash-tags|^groups:/, 'clients of Redis and Clusters are not simulated'],
  [/\/bytes\//, 'no store of it is simulated'],
  [
    /^(?:bounded memory|kept keys|eviction|sweeping|settled logs):|penalty's block outlives/,
    'memory and time of the machine are not simulated',
  ],
  [/^checked (?:input|options):/, 'a plan has no wrong options'],
  [/^(?:copies|format):/, 'a world has one copy of one version'],
  [/^keys:/, 'no key of a plan has anything to escape'],
  [/\/adaptive\//, 'no plan searches for a limit'],
  [/\/reserve-all\.ts$/, 'no plan reserves on several keys at once'],
  [/^nearing: (?!every charge)/, 'what is told of shares is told of calls that neither wait nor settle'],
  [/^overload: pauses double without an end/, 'a world ends before a pause of a minute'],
]

/** What was found when all were looked for last. */
const FOUND = 'packages/simulation/found.md'
/** Calls after which a mistake counts as missed, and of plans in which faults meet by pairs, where it needs two. */
const MOST_CALLS = 20_000
const MOST_CALLS_OF_PAIRS = 100_000
/** Calls of plans with one fault alone, by which a mistake that needs two must not be found. */
const MOST_CALLS_ALONE = 5000

type Planted = readonly [mistake: sabotage.Mistake, isOfTwo: boolean]

/** The mistakes of `verify -- sabotage` in what simulated processes and their server run, and those that need two faults. */
async function plantable(): Promise<Planted[]> {
  // By its address, as an import beside sources would be taken for TypeScript.
  const address = pathToFileURL('scripts/verify/sabotage/mistakes.js').href
  const { mistakes, pairs } = (await import(address)) as typeof sabotage
  const { metafile } = await build({ ...OPTIONS, metafile: true })
  const files = new Set(Object.keys(metafile.inputs))
  const run = mistakes.filter(
    (each) =>
      (files.has(each.file) || each.file.startsWith('lua/')) &&
      !NOT_RUN.some(([where]) => where.test(each.file) || where.test(nameOf(each))),
  )
  return [...run.map((each) => [each, false] as const), ...pairs.map((each) => [each, true] as const)]
}

type Named = Pick<sabotage.Mistake, 'mechanism' | 'mistake'>

/** The name of a mistake, as sabotage prints it. */
function nameOf({ mechanism, mistake }: Named): string {
  return `${mechanism}: ${mistake}`
}

/**
 * Plants each mistake whose name or file holds a text, and looks for it by seeds in their order. True if four fifths are found, and all of
 * those that need two faults, and none of these with one fault alone. Throws where there is none.
 */
export async function findMistakes(
  only: string,
  write: boolean,
  say: (line: string) => void,
): Promise<boolean> {
  const began = performance.now()
  const all = await plantable()
  const chosen = all.filter(([each]) => `${each.file} ${nameOf(each)}`.includes(only))
  if (chosen.length === 0) throw new Error(`no mistake has ${JSON.stringify(only)} in its file or its name`)
  const rows = new Map<string, string>()
  // What is not looked for this time stays as it was found last.
  const page = write ? lastRows() : rows
  for (const [mistake, isOfTwo] of chosen) {
    const name = nameOf(mistake)
    const program = await bundle([mistake])
    const finding = await (isOfTwo
      ? find(mistake, program, MOST_CALLS_OF_PAIRS, EACH_WITH_PAIRS)
      : find(mistake, program, MOST_CALLS, 1))
    const faults = finding && isOfTwo ? await needed(finding, program) : []
    const row = rowOf(finding, faults)
    rows.set(name, row)
    page.set(name, row)
    const how = finding ? `${describe(finding)} ${faults.join(' + ')}` : ''
    say(`${!finding ? 'MISSED' : isMissed(row) ? 'ALONE ' : 'found '}  ${name}  ${how}`)
    if (write) writeFileSync(FOUND, pageOf(all, page))
  }
  const { sum, isEnough } = summed(chosen, rows)
  say(`${sum}, in ${((performance.now() - began) / 60_000).toFixed(0)} minutes`)
  return isEnough
}

interface Finding {
  readonly law: Law
  readonly breach: string
  readonly plan: Plan
  readonly calls: number
}

function describe({ law, breach, plan, calls }: Finding): string {
  return `"${law.name}" by seed ${plan.seed}, ${calls} calls: ${breach.slice(0, 160)}`
}

/** What the page says of a mistake: which law it breaks, after how many calls, and which faults have to meet. */
function rowOf(finding: Finding | undefined, faults: readonly string[]): string {
  if (!finding) return '**not found** | |'
  const law = faults.length === 1 ? '**found with one fault alone**' : finding.law.name
  return `${law} | ${finding.calls} | ${faults.join(' + ')}`
}

function isMissed(row: string): boolean {
  return row.startsWith('**')
}

/** How many of these mistakes are found, and whether that is enough. */
function summed(
  all: readonly Planted[],
  rows: ReadonlyMap<string, string>,
): { readonly sum: string; readonly isEnough: boolean } {
  const known = all.filter(([each]) => rows.has(nameOf(each)))
  const missed = known.filter(([each]) => isMissed(rows.get(nameOf(each))!))
  const [pairs, missedPairs] = [known, missed].map((those) => those.filter(([, isOfTwo]) => isOfTwo).length)
  const sum =
    `${known.length - missed.length} of ${known.length} are found, each within ${MOST_CALLS} calls, ` +
    `of these ${pairs! - missedPairs!} of ${pairs} that need two faults, within ${MOST_CALLS_OF_PAIRS}` +
    (known.length < all.length ? `; ${all.length - known.length} have not been looked for` : '')
  return { sum, isEnough: missed.length <= 0.2 * known.length && missedPairs === 0 }
}

function lastRows(): Map<string, string> {
  const page = existsSync(FOUND) ? readFileSync(FOUND, 'utf8') : ''
  return new Map([...page.matchAll(/^\| (.+?) \| (.+) \|$/gm)].map(([, name, row]) => [name!, row!]))
}

function pageOf(all: readonly Planted[], rows: ReadonlyMap<string, string>): string {
  const lines = all.flatMap(([each]) => {
    const row = rows.get(nameOf(each))
    return row === undefined ? [] : [`| ${nameOf(each)} | ${row} |`]
  })
  return `# Mistakes that simulated fleets find

*Written by \`npm run verify -- sabotage --simulated --write\`.* Each mistake of \`verify -- sabotage\` that a simulated process or its server
runs into is planted alone, and looked for by the seeds from 1 on: ${summed(all, rows).sum}.

| mistake | the law that it breaks | calls | faults that have to meet |
|---|---|---|---|
${lines.join('\n')}
`
}

/** How a mistake is found, if it is, by each so-manieth seed. */
async function find(
  mistake: Change,
  program: Program,
  mostCalls: number,
  each: number,
): Promise<Finding | undefined> {
  let calls = 0
  for (let seed = each; calls < mostCalls; seed += each) {
    try {
      const plan = draw(seed)
      const history = await simulate(plan, program)
      calls += history.records.length
      const [first] = judge(history).broken
      if (first) return { law: first[0], breach: first[1], plan, calls }
    } catch (error) {
      throw new Error(`${mistake.file}, seed ${seed}`, { cause: error })
    }
  }
  return undefined
}

/**
 * The faults that have to meet for a mistake to be found: those of the plan without which it breaks the law no more, or one that breaks any
 * law alone, in a plan of a seed of which nothing else is left.
 */
async function needed({ law, plan }: Finding, program: Program): Promise<string[]> {
  const calls = plan.items.filter(({ kind }) => kind === 'call')
  const { items } = await shrink(plan, program, law, calls)
  const faults = faultsOf(items)
  for (let [seed, most] = [1, MOST_CALLS_ALONE]; faults.length > 1 && most > 0; seed++) {
    const whole = draw(seed)
    const all = faultsOf(whole.items)
    const one = all[seed % all.length]!
    const alone = whole.items.filter((item) => item.kind === 'call' || item === one)
    const history = await simulate({ ...whole, items: alone }, program)
    if (judge(history).broken.length > 0) return [one.fault]
    most -= history.records.length
  }
  return faults.map(({ fault }) => fault)
}

function faultsOf(items: Plan['items']): Fault[] {
  return items.filter((item) => item.kind === 'fault')
}
