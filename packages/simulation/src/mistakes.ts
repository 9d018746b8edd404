import { build } from 'esbuild'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type * as sabotage from '../../../scripts/verify/sabotage/mistakes.js'
import { bundle, type Change, OPTIONS } from './bundle.js'
import type { Law } from './law.js'
import { judge } from './laws.js'
import { draw } from './plan.js'
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
  [/^nearing: (?!every charge)/, 'what is told of shares is told of calls that neither wait nor settle'],
  [/^overload: pauses double without an end/, 'a world ends before a pause of a minute'],
]

/** What was found when all were looked for last. */
const FOUND = 'packages/simulation/found.md'
/** Calls after which a mistake counts as missed; where it needs two faults, of plans in which all pairs of their groups have met. */
const MOST_CALLS = 20_000
const MOST_CALLS_OF_PAIRS = 65_000

/** The mistakes of `verify -- sabotage` in what simulated processes and their server run, and those of two faults, each with the most calls. */
async function plantable(): Promise<(readonly [sabotage.Mistake, mostCalls: number])[]> {
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
  return [
    ...run.map((each) => [each, MOST_CALLS] as const),
    ...pairs.map((each) => [each, MOST_CALLS_OF_PAIRS] as const),
  ]
}

type Named = Pick<sabotage.Mistake, 'mechanism' | 'mistake'>

/** The name of a mistake, as sabotage prints it. */
function nameOf({ mechanism, mistake }: Named): string {
  return `${mechanism}: ${mistake}`
}

/** Plants each mistake whose name or file holds a text, and looks for it by seeds in their order. True if four fifths are found. Throws where there is none. */
export async function findMistakes(
  only: string,
  write: boolean,
  say: (line: string) => void,
): Promise<boolean> {
  const rows: string[] = []
  let found = 0
  const began = performance.now()
  const chosen = (await plantable()).filter(([each]) => `${each.file} ${nameOf(each)}`.includes(only))
  if (chosen.length === 0) throw new Error(`no mistake has ${JSON.stringify(only)} in its file or its name`)
  for (const [mistake, most] of chosen) {
    const name = nameOf(mistake)
    const finding = await find(mistake, most)
    if (finding) found++
    say(finding ? `found   ${name}  ${describe(finding)}` : `MISSED  ${name}`)
    rows.push(`| ${name} | ${finding ? `${finding.law.name} | ${finding.calls}` : '**not found** | '} |`)
  }
  const within = `${MOST_CALLS} calls, or ${MOST_CALLS_OF_PAIRS} where it needs two faults`
  const sum = `${found} of ${rows.length} are found, each within ${within}`
  say(`${sum}, in ${((performance.now() - began) / 60_000).toFixed(0)} minutes`)
  if (write) writeFileSync(FOUND, pageOf(sum, rows))
  return found >= 0.8 * rows.length
}

interface Finding {
  readonly law: Law
  readonly breach: string
  readonly seed: number
  readonly calls: number
}

function describe({ law, breach, seed, calls }: Finding): string {
  return `"${law.name}" by seed ${seed}, ${calls} calls: ${breach.slice(0, 160)}`
}

function pageOf(sum: string, rows: readonly string[]): string {
  return `# Mistakes that simulated fleets find

*Written by \`npm run verify -- sabotage --simulated --write\`.* Each mistake of \`verify -- sabotage\` that a simulated process or its server
runs into is planted alone, and looked for by the seeds from 1 on: ${sum}.

| mistake | the law that it breaks | calls |
|---|---|---|
${rows.join('\n')}
`
}

/** How a mistake is found, if it is. */
async function find(mistake: Change, mostCalls: number): Promise<Finding | undefined> {
  const program = await bundle([mistake])
  let calls = 0
  for (let seed = 1; calls < mostCalls; seed++) {
    try {
      const history = await simulate(draw(seed), program)
      calls += history.records.length
      const [first] = judge(history).broken
      if (first) return { law: first[0], breach: first[1], seed, calls }
    } catch (error) {
      throw new Error(`${mistake.file}, seed ${seed}`, { cause: error })
    }
  }
  return undefined
}
