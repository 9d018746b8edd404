import { Project } from './project.js'

let project: Project
beforeEach(() => {
  project = new Project().write({
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
})
afterEach(() => project.remove())

/** What the check says of a workflow that runs these commands. */
function check(commands: readonly string[], job = 'runs-on: ubuntu-latest') {
  const steps = commands.map((command) => `      - run: ${command}\n`)
  const text = `name: CI\non: push\njobs:\n  test:\n    ${job}\n    steps:\n${steps.join('')}`
  return project.write({ '.github/workflows/ci.yml': text }).run('check/workflows.js')
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

  it.each([
    ['npm run deploy', 'npm run deploy is no command that runs here'],
    ['make test', 'make test is no command that runs here'],
    ['npm test && npm publish', 'npm test && npm publish is no command that runs here'],
    ['npm run check -- everything', 'npm run check has no everything'],
    ['npm run check', 'npm run check has no '],
    ['npm run check -- public', 'npm run check has no public'],
    ['npm run release -- everything', 'npm run release has no everything'],
    ['npm test -- packages/koa', 'there is no packages/koa'],
    ['|', '| is no command that runs here'],
  ])('finds that %s does not', (command, why) => {
    const { status, output } = check([command])
    expect(status).toBe(1)
    expect(output).toContain(`.github/workflows/ci.yml:7: ${why}`)
  })

  it.each([
    ['runs-on: ubunt-latest', 'label "ubunt-latest" is unknown'],
    ['runs-on: ${{ matrix.os }}', 'property "os" is not defined'],
    ['runs_on: ubuntu-latest', 'unexpected key "runs_on"'],
  ])('finds what actionlint does: %s', (job, why) => {
    const { status, output } = check(['npm test'], job)
    expect([status, output]).toEqual([1, expect.stringContaining(why)])
  })
})
