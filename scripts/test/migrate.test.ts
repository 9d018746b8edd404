import { onSources } from '@sluice/harness/processes'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Project } from './project.js'

const HEAD = '| p-queue | here | run on both |\n|---|---|---|\n'
const ROW = '| `concurrency` | `createSemaphore({ limit })` | same |\n'
const script = (lines: string, title = 'concurrency') => `\n\`\`\`js rows\n// ${title}\n${lines}\n\`\`\`\n`
const BOTH = `there: it = new PQueue({ concurrency: 2 }), run = (job) => it.add(job)
here: it = createQueue({ semaphore: createSemaphore({ limit: 2 }) }), run = (job) => it.run(job)`
const README = '# Pages\n\n| option | package | here |\n|---|---|---|\n'

const project = new Project()

describe('the rows of a page', () => {
  /** The runner's findings about the only row of a page. */
  function faultsOf(row: string, lines: string): unknown {
    project.write({ 'p-queue.md': HEAD + row + script(lines) })
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [...onSources(), 'scripts/verify/migrate/run-page.js', 'p-queue.md', '0', project.folder],
      { encoding: 'utf8' },
    )
    try {
      return (JSON.parse(stdout) as { faults: unknown }[])[0]!.faults
    } catch {
      throw new Error(stderr)
    }
  }

  it('pass where both sides say the same, and say otherwise without the option', () => {
    expect(faultsOf(ROW, `${BOTH}\nsay(...(await starts(4, run, 100)))`)).toEqual([])
  })

  it('are wrong where the script passes without the option too', () => {
    expect(faultsOf(ROW, `${BOTH}\nsay(...(await starts(2, run, 100)))`)).toEqual([
      'passes without concurrency',
    ])
    expect(faultsOf(ROW, 'say(1)')).toEqual(['does not use concurrency'])
  })

  it('are wrong where the sides differ and the row says same, or the other way round', () => {
    const differing = `${BOTH.replace('limit: 2', 'limit: 3')}\nsay(...(await starts(4, run, 100)))`
    expect(faultsOf(ROW, differing)).toEqual(['there 0, 0, 100, 100, not 0, 0, 0, 100'])
    const shown = (theirs: string, ours: string) =>
      ROW.replace('same', `differs: \`${theirs}\`, here \`${ours}\``)
    expect(faultsOf(shown('0, 0, 100, 100', '0, 0, 0, 100'), differing)).toEqual([])
    expect(faultsOf(shown('0, 0, 100, 100', '0, 0, 0, 0'), differing)).toEqual([
      'here 0, 0, 0, 100, not 0, 0, 0, 0',
    ])
    expect(faultsOf(shown('0, 0', '0, 0'), `${BOTH}\nsay(...(await starts(2, run, 100)))`)).toEqual([
      'is the same: 0, 0',
      'passes without concurrency',
    ])
  })

  it('are wrong where a script says nothing, fails or cannot be read', () => {
    expect(faultsOf(ROW, BOTH)).toContain('says nothing')
    expect(faultsOf(ROW, `${BOTH}\nsay(nothing)`)).toContainEqual(
      expect.stringContaining('nothing is not defined'),
    )
    expect(faultsOf(ROW, 'say(')).toEqual([expect.stringContaining('SyntaxError')])
  })
})

describe('npm run check -- migrate', () => {
  const check = (page: string, ...args: string[]) =>
    project
      .write({ 'docs/migrate/README.md': README, 'docs/migrate/p-queue.md': page })
      .run('check/migrate.js', ...args)

  it('writes the table of all options from the rows', () => {
    const page = HEAD + ROW + '| `id`, `queueClass` | `priority` | none: no names |\n' + script('say(1)')
    expect(check(page).status).toBe(1)
    expect(check(page, '--write')).toEqual({
      status: 0,
      output: '2 rows: 1 same, 0 differ, 1 none; 0 wrong\n',
    })
    expect(project.read(join('docs/migrate', 'README.md'))).toBe(
      `${README}| \`concurrency\` | [p-queue](p-queue.md#) | \`createSemaphore({ limit })\` |\n` +
        '| `id` | [p-queue](p-queue.md#) | `priority` |\n| `queueClass` | [p-queue](p-queue.md#) | `priority` |\n',
    )
    expect(project.run('check/migrate.js').status).toBe(0)
  })

  it.each([
    [
      'a row without a kind',
      HEAD + ROW.replace('same', '?'),
      '`concurrency` is neither same, nor differs, nor none',
    ],
    ['a row that names nothing', `${HEAD}| all | all | none: no |\n`, 'all names no option'],
    ['a row without a script', HEAD + ROW, "must have a script named 'concurrency' in its place, got ''"],
    [
      'a script without a row',
      `${HEAD}| \`id\` | - | none: no |\n${script('say(1)')}`,
      'concurrency has no row',
    ],
    ['a script of seven lines', HEAD + ROW + script('say(1)\n'.repeat(7).trim()), 'has 7 lines, at most 6'],
  ])('finds %s', (_, page, fault) => {
    const { status, output } = check(page, '--write')
    expect([status, output]).toEqual([1, expect.stringContaining(fault)])
  })
})
