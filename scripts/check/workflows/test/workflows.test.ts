import { Project } from '../../../test/project.js'

const project = new Project({
  'package.json': {
    scripts: {
      test: 'jest',
      lint: 'oxlint',
      check: 'node scripts/check.js',
      release: 'node scripts/release.js',
    },
  },
  'scripts/check.js': "console.log('npm run check -- api  the public surface')\n",
  'scripts/release.js': "console.error('npm run release -- version | --dry-run')\n",
  'packages/core/a.test.ts': '',
})

/** The findings of the check in a workflow that runs these commands. */
function check(commands: readonly string[]) {
  return project.write({ '.github/workflows/ci.yml': workflow(commands) }).run('check/workflows/run.js')
}

function workflow(commands: readonly string[], job = 'runs-on: ubuntu-latest'): string {
  const steps = commands.map((command) => `      - run: ${command}\n`)
  return `name: CI\non: push\njobs:\n  test:\n    ${job}\n    steps:\n${steps.join('')}`
}

describe('the check of workflows', () => {
  it('takes commands that run here', () => {
    const commands = [
      'npm ci',
      'npm test',
      'npm test -- packages/core',
      'npm run lint',
      'npm run check -- api',
      'npm run release -- --dry-run',
    ]
    expect(check([...commands, 'bash .ci/run'])).toEqual({
      status: 0,
      output: '7 commands of workflows, 0 problems\n',
    })
  })

  it('finds each command that does not', () => {
    const wrong = [
      ['npm run deploy', 'npm run deploy is no command that runs here'],
      ['make test', 'make test is no command that runs here'],
      ['npm test && npm publish', 'npm test && npm publish is no command that runs here'],
      ['npm run check -- everything', 'npm run check has no everything'],
      ['npm run check', 'npm run check has no '],
      ['npm run check -- public', 'npm run check has no public'],
      ['npm run release -- everything', 'npm run release has no everything'],
      ['npm test -- packages/koa', 'there is no packages/koa'],
      ['|', '| is no command that runs here'],
    ] as const
    const { status, output } = check(wrong.map(([command]) => command))
    const problems = output.split('\n')
    expect(status).toBe(1)
    for (const [i, [, why]] of wrong.entries())
      expect(problems).toContain(`.github/workflows/ci.yml:${7 + i}: ${why}`)
  })

  it('finds what actionlint does', () => {
    const wrong = [
      ['label', 'runs-on: ubunt-latest', 'label "ubunt-latest" is unknown'],
      ['matrix', 'runs-on: ${{ matrix.os }}', 'property "os" is not defined'],
      ['key', 'runs_on: ubuntu-latest', 'unexpected key "runs_on"'],
    ] as const
    for (const [file, job] of wrong)
      project.write({ [`.github/workflows/${file}.yml`]: workflow(['npm test'], job) })
    const { status, output } = project.run('check/workflows/run.js')
    const problems = output.split('\n')
    expect(status).toBe(1)
    for (const [file, , why] of wrong)
      expect(problems).toContainEqual(expect.stringMatching(`^\\.github/workflows/${file}\\.yml.*${why}`))
  })
})
