import { execFileSync } from 'node:child_process'
import { Project } from './project.js'

const SHIPPED = 'packages/core'

const project = new Project({
  [`${SHIPPED}/package.json`]: { name: '@sluice/core', version: '1.0.0' },
  'packages/bench/package.json': { name: '@sluice/bench', private: true },
  'packages/bench/src/main.js': '// a bench\n\nmeasure()\nprint()\n',
})

const lines = (count: number) => 'one()\n'.repeat(count)

/** Runs the check in a repository that has these files too. */
function check(files: Readonly<Record<string, string>>) {
  project.write(files)
  execFileSync('git', ['init', '--quiet'], { cwd: project.folder })
  return project.run('check/tools.js')
}

describe('the count of tools', () => {
  it('has lines of code, by folder and in all', () => {
    const { status, output } = check({ 'scripts/check.js': lines(3), 'site/page.vue': lines(5) })
    expect(status).toBe(0)
    expect(output).toMatch(
      /^ {5}5 {2}site, at most \d+\n {5}3 {2}scripts\n {5}2 {2}packages\/bench\n {4}10 {2}all tools, at most \d+\n/,
    )
  })

  it.each([
    ['is packed', `${SHIPPED}/src/index.ts`],
    ['is a test', `${SHIPPED}/test/a.test.ts`],
    ['is there to be read', 'docs/recipes/a.ts'],
    ['is an example', 'examples/koa/server.ts'],
    ["is the adapters' kit", 'packages/harness/src/adapters/kit.ts'],
    ['is a fault row', 'packages/faults/src/rows/row-01.ts'],
    ['is text', 'packages/bench/README.md'],
  ])('has nothing of what %s', (_, path) => {
    expect(check({ [path]: lines(100) }).output).toMatch(/^ +2 {2}all tools/m)
  })

  it('has what lies among tests and is run by no test', () => {
    const { output } = check({
      [`${SHIPPED}/test/a.test.ts`]: "import { b } from './parts/b.js'\nrun(new URL('c.ts', here))\n",
      [`${SHIPPED}/test/parts/b.ts`]: lines(10),
      [`${SHIPPED}/test/c.ts`]: lines(20),
      [`${SHIPPED}/test/simulation/run.js`]: lines(40),
    })
    expect(output).toMatch(/^ +40 {2}packages\/core$/m)
  })

  it('fails where there are more than may be, wherever they lie', () => {
    const { status, output } = check({ 'tools/elsewhere/new.js': lines(40_000) })
    expect([status, output]).toEqual([1, expect.stringContaining('40002  all tools, at most')])
    expect(check({ 'tools/elsewhere/new.js': '', 'site/a.js': lines(4000) }).status).toBe(1)
  })
})
