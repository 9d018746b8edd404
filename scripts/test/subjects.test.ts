import { execFile } from 'node:child_process'
import { fits } from '../subjects.js'
import { Project } from './project.js'

jest.setTimeout(60_000)

/** Runs a command of many subjects. */
function run(command: string, ...args: readonly string[]) {
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [`scripts/${command}.js`, ...args],
      { timeout: 20_000 },
      (error, stdout, stderr) => resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

describe('arguments of a subject', () => {
  const USAGE = '[ROUNDS] [NAME...] [--write] [--only TEXT] [--bar N]'

  it.each([[], ['3'], ['3', 'a', 'b'], ['--write'], ['3', '--only', 'a b', '--bar', '0.95']])(
    'may be those of its usage: %j %j %j %j %j',
    (...args: string[]) => expect(fits(args, USAGE)).toBe(true),
  )

  it.each([['--help'], ['-h'], ['many'], ['--only'], ['--bar', 'high'], ['--rounds', '3'], ['3', '']])(
    'may be no others: %j %j',
    (...args: string[]) => expect(fits(args, USAGE)).toBe(false),
  )

  it('may be any of Jest, but no help, where the subject is run by Jest', () => {
    expect(
      fits(['--json', '--outputFile=/tmp/jest.json', '-t', 'a b'], '[-t TEXT] [OPTION OF JEST...]'),
    ).toBe(true)
    expect(fits(['--help'], '[-t TEXT] [OPTION OF JEST...]')).toBe(false)
  })

  it('may be none where it takes none', () => {
    expect(fits([], '')).toBe(true)
    expect(fits(['3'], '')).toBe(false)
  })
})

describe('what the folder of a program locks', () => {
  const inTools = { 'node_modules/tool': { resolved: 'tool', link: true }, tool: {} }
  const manifest = { dependencies: { tool: 'file:tool' } }
  const project = new Project({
    'package-lock.json': { lockfileVersion: 3, packages: {} },
    'tools/package.json': manifest,
    'tools/package-lock.json': { lockfileVersion: 3, packages: { '': manifest, ...inTools } },
    'tools/tool/package.json': { name: 'tool', version: '1.0.0' },
    'tools/test/deep/a.test.ts': '',
  })
  const installed = (folder: string) => {
    expect(project.evaluate('subjects.js', `own.install('${folder}')`).status).toBe(0)
    return project.has('tools/node_modules/tool/package.json')
  }

  it.each(['tools', 'tools/test/deep'])('is installed for one in %s', (folder) => {
    expect(installed(folder)).toBe(true)
  })

  it.each(['.', 'elsewhere/deep', '/'])('is not for one in %s, and nothing of the root', (folder) => {
    expect(installed(folder)).toBe(false)
    expect(project.has('node_modules')).toBe(false)
  })
})

it.each([
  ['check', 'sizes', '--help', ''],
  ['check', 'api', '--no-such', ' [--write] [--no-pages]'],
  ['verify', 'adapters', '--no-such', ''],
  ['verify', 'faults', '--help', ' [ROW...]'],
  ['bench', 'redis-cpu', '--help', ' [ROUNDS]'],
  ['bench', 'redis-cpu', 'many', ' [ROUNDS]'],
])(
  'npm run %s -- %s %s prints its usage in a line, runs nothing, and exits 2',
  async (command, name, arg, usage) => {
    const stderr = `npm run ${command} -- ${name}${usage}\n`
    expect(await run(command, name, arg)).toEqual({ status: 2, stdout: '', stderr })
  },
)

it('npm run release does so too', async () => {
  const usage = { status: 2, stdout: '', stderr: 'npm run release -- version | --dry-run | publish\n' }
  expect(await run('release', '--help')).toEqual(usage)
})
