import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { STRANGERS_TSCONFIG } from '../../../docs/test/snippets.js'
import { scenarioAt } from '../address.js'
import { ADAPTERS, codeOf } from '../code.js'
import { PRESETS } from '../presets.js'

const ROOT = resolve(__dirname, '../../..')

/** Each program of each preset, by the name of its file. Some are the same. */
const PROGRAMS = PRESETS.flatMap(({ id, fragment }) => {
  const { columns, settings } = scenarioAt(fragment).scenario
  return columns.flatMap((column, i) =>
    ADAPTERS.map((adapter) => {
      const code = codeOf(column, adapter, Number(settings['cost'] ?? 1))
      return { file: `${adapter}-${id}-${i + 1}`, code }
    }),
  )
})

/** Runs every program in one process, which ends when all have begun: servers listen on any port, and nothing is fetched. */
const RUN_ALL = `
globalThis.fetch = async () => new Response('[]')
console.log = () => {}
for (const file of process.argv.slice(1)) await import(file)
process.exit(0)
`

describe('the code of a preset', () => {
  let folder: string
  beforeAll(() => {
    // Inside of the repository, where the packages are found as in an application that has installed them.
    folder = mkdtempSync(join(__dirname, '.code-'))
    for (const { file, code } of PROGRAMS)
      writeFileSync(join(folder, `${file}.mts`), code.replace(/\b3000\b/, '0'))
    const include = { include: ['*.mts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...STRANGERS_TSCONFIG, ...include }))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('is there for every column and adapter', () => {
    expect(PROGRAMS.length).toBe(
      ADAPTERS.length * PROGRAMS.filter(({ file }) => file.startsWith('core-')).length,
    )
    expect(PROGRAMS.length).toBeGreaterThan(ADAPTERS.length * PRESETS.length)
  })

  it('compiles in strict TypeScript and runs, for every adapter', () => {
    expect(outputOf(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder)).toBe('')
    const files = PROGRAMS.map(({ file }) => join(folder, 'out', `${file}.mjs`))
    expect(outputOf('--input-type=module', '-e', RUN_ALL, ...files)).toBe('')
  }, 120_000)
})

function outputOf(...args: readonly string[]): string {
  try {
    return execFileSync(process.execPath, [...args], { encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    return `${stdout}${stderr}`
  }
}
