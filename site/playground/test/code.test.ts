import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runInNewContext } from 'node:vm'
import { STRANGERS_TSCONFIG } from '../../../docs/test/snippets.js'
import { ADAPTERS, codeOf } from '../code.js'
import { formatScenario, scenarioAt } from '../address.js'
import { PRESETS } from '../presets.js'
import type { Column } from '../scenario.js'

const ROOT = resolve(__dirname, '../../..')

/** Each program of each preset, by the name of its file. Some are the same. */
const PROGRAMS = PRESETS.flatMap(({ id, fragment }) => {
  const { columns, settings } = scenarioAt(fragment).scenario
  return columns.flatMap((column, i) =>
    ADAPTERS.map((adapter) => {
      const code = codeOf(column, adapter, settings['cost'] ?? 1)!
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

it.each(ADAPTERS)('the code for %s says what it has none of: leases', (adapter) => {
  const policies = [{ algorithm: 'gcra', limit: 5, window: '1s' }]
  const leases = { ttl: '1s', size: 10, processes: 4 }
  expect(codeOf({ policies, leases }, adapter, 1)).toMatch(/^\/\/ .* leases: { ttl: '1s', size: 10 } }\)$/m)
  expect(codeOf({ policies }, adapter, 1)).not.toContain('leases')
})

describe('the code of a link by a stranger', () => {
  const policy = { algorithm: 'gcra', limit: 5, window: '1s' }
  /** The column of the link that has this column in it. */
  const read = (column: Column): Column =>
    scenarioAt(formatScenario({ settings: { kind: 'even' }, columns: [column] })).scenario.columns[0]!

  it.each([
    "it's",
    '\\',
    "\\'",
    '"',
    '`${process.exit()}`',
    '</script><b>',
    '<!--',
    '$&$OPTIONS',
    "'});fetch('//x');({'",
  ])('has the name %s as a text', (name) => {
    for (const adapter of ADAPTERS) {
      const code = codeOf(read({ policies: [{ ...policy, name }] }), adapter, 1)!
      expect(code).not.toMatch(/<[/!]/)
      const [, list = ''] = /^const policies = (.*)$/m.exec(code) ?? []
      const made: unknown = runInNewContext(list, { gcra: (options: object) => JSON.stringify(options) })
      expect(made).toEqual([JSON.stringify({ limit: 5, window: '1s', name })])
    }
  })

  it.each<[what: string, column: Column, cost?: string]>([
    ['a name with a line end', { policies: [{ ...policy, name: "x\n');alert(1)//" }] }],
    ['a name with a line separator', { policies: [{ ...policy, name: 'x\u2028y' }] }],
    ['a name with a NUL', { policies: [{ ...policy, name: '\0' }] }],
    ['code as an algorithm', { policies: [{ ...policy, algorithm: 'process.exit(),gcra' }] }],
    ['a name of every object as an algorithm', { policies: [{ ...policy, algorithm: 'constructor' }] }],
    ['code as an option', { policies: [{ ...policy, '[alert`1`]': 1 }] }],
    ['code as an option of a wait', { policies: [policy], wait: { maxWait: '1s', '[alert`1`]': 1 } }],
    [
      'code as an option of a penalty',
      { policies: [policy], penalty: { after: 1, block: '1s', '[alert`1`]': 1 } },
    ],
    ['code as an option of leases', { policies: [policy], leases: { '[alert`1`]': 1 } }],
    ['code as a limit', { policies: [{ ...policy, limit: 'alert`1`' }] }],
    ['code as a window', { policies: [{ ...policy, window: "1s',x:alert`1`,y:'" }] }],
    ['code as a cost', { policies: [policy] }, '1);alert(1'],
    ['no policy', { policies: [] }],
  ])('is not there for %s', (_, column, cost = '1') => {
    for (const adapter of ADAPTERS) expect(codeOf(column, adapter, cost === '1' ? 1 : cost)).toBeUndefined()
  })
})

function outputOf(...args: readonly string[]): string {
  try {
    return execFileSync(process.execPath, [...args], { encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    return `${stdout}${stderr}`
  }
}
