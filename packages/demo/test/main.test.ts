import { start } from './program.js'

test.each([[[]], [['--help']]])('lists the subjects for %j', async (args) => {
  const run = start(args)
  expect(await run.exitCode).toBe(0)
  expect([...run.output().matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)).toEqual([
    'express',
    'fleet',
    'observability',
    'payments',
  ])
  expect(run.errors()).toBe('')
})

test.each(['nonsense', 'constructor'])('lists the subjects and exits with 2 for %s', async (subject) => {
  const run = start([subject])
  expect(await run.exitCode).toBe(2)
  expect(run.errors()).toContain(`There is no demo '${subject}'`)
  expect(run.errors()).toContain('payments')
})

test.each(['express', 'fleet', 'observability', 'payments'])(
  'explains the options of %s',
  async (subject) => {
    const run = start([subject, '--help'])
    expect(await run.exitCode).toBe(0)
    expect(run.output()).toMatch(/^Usage: npm .*\n[^]*--help/)
  },
)
