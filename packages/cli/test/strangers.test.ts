import * as fc from 'fast-check'
import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { runsIn } from '@sluice/testing/internal'
import { main } from '../src/terminal/main.js'

/*
 * The fuzz of the command line: names of limiters, policies, callers and files, lines and values of flags are made by strangers. Whatever
 * they are, the command ends by itself, its text moves no cursor and is no command to a CI, and what it reads stays as it is.
 */

const RUNS = Math.ceil(runsIn('LOG_RUNS', 10_000) / 10)

const MOVES = [
  '\n',
  '\r',
  '\t',
  '\b',
  '\u001b[2J',
  '\u001b]0;',
  '\u007f',
  '\u0085',
  '\u009b31m',
  '\u202e',
  '\u2028',
  '\ud800',
]
const COMMANDS = [
  '::error::x',
  '::error file=a::x',
  '  ::add-mask::x',
  '##[group]x',
  '##vso[x]',
  '###teamcity[x]',
  '--- ',
  '+++ ',
]
const PATHS = [
  'a]',
  'a[0]',
  'a.b',
  '[',
  ']',
  '.',
  'policies[0]',
  '"',
  "'",
  '\\',
  '<',
  '{}',
  '$(x)',
  ' ',
  'é',
  '::1',
]
const NAMES = ['__proto__', 'constructor', 'toString', 'key', 'text', 'x'.repeat(70)]
const PIECES = [...MOVES, ...COMMANDS, ...PATHS, ...NAMES]
const name = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 3 })
  .map((pieces) => pieces.join(''))
/** The name of a file has no NUL and no slash, and lone surrogates are none of UTF-8. */
const fileName = name
  .map((text) => Buffer.from(text).toString().slice(0, 60))
  .filter((text) => text.trim() !== '' && !/^[.-]/.test(text))
const policy = fc.record(
  {
    algorithm: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('slidingLog', 'gcra', 'fixedWindow') },
      { weight: 1, arbitrary: name },
    ),
    limit: fc.oneof(fc.integer({ min: 1, max: 5 }), name),
    window: fc.constantFrom('1s', '1m', '1 m'),
    name,
  },
  { requiredKeys: ['algorithm', 'limit', 'window'] },
)
const limiter = fc.record(
  {
    policies: fc.array(policy, { minLength: 1, maxLength: 2 }),
    by: fc.oneof(fc.constant('header:user-agent'), name),
    where: fc.oneof(
      name.map((text) => `path!=${text}`),
      name,
    ),
  },
  { requiredKeys: ['policies'] },
)
const odd = fc.constantFrom('a]', 'a.b', '::error::x', '##vso[x]', '--- x', 'key', 'constructor', '__proto__')
const sound = fc.record({
  policies: fc.tuple(
    fc.record({
      algorithm: fc.constant('fixedWindow'),
      limit: fc.constant(1),
      window: fc.constant('1m'),
      name: odd,
    }),
  ),
})
const fileOf = <T>(names: fc.Arbitrary<string>, limiters: fc.Arbitrary<T>) =>
  fc
    .array(fc.tuple(names, limiters), { minLength: 1, maxLength: 3 })
    .map((all) => ({ limiters: Object.fromEntries(all) }))
const policies = fc.oneof(fileOf(name, limiter), fileOf(odd, sound))
const log = fc.array(fc.record({ agent: name, junk: name, isJunk: fc.boolean() }), {
  minLength: 1,
  maxLength: 12,
})
const scene = fc.record({
  command: fc.constantFrom('check', 'check', 'replay', 'replay', 'suggest'),
  one: policies,
  other: policies,
  log,
  names: fc.uniqueArray(fileName, { minLength: 3, maxLength: 3 }),
  flags: fc.subarray(['--json', '--hash-keys', '--strict']),
  option: fc.option(
    fc.tuple(fc.constantFrom('--by', '--where', '--fail-if', '--format', '--skew', '--nonsense'), name),
  ),
  isCompared: fc.boolean(),
  /** The file of --out: none, a file of its own, or one of those that are read, by a link to it or its own name. */
  out: fc.constantFrom(
    undefined,
    'out',
    ...['hard', 'soft', 'itself'].flatMap((how) => [0, 1, 2].map((i) => `${how} ${i}`)),
  ),
})
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never

/** A character that moves a cursor or turns text; and a line that a CI takes for a command. */
const CONTROL = /[^\n\P{C}]|[\p{Zl}\p{Zp}]/u
const COMMAND = /##\w*\[|^\s*::.*::|^\s*::error|^(?:---|\+\+\+|~~~|\^\^\^)/m

/** Runs the command in this process on the files of a scene. Returns its outcome, and whether a file that is read has changed. */
async function run(
  { command, one, other, log: lines, names, flags, option, isCompared, out }: Scene,
  folder: string,
) {
  const [logPath, file, against] = names as [string, string, string]
  const text = lines.map(({ agent, junk, isJunk }, i) => {
    if (isJunk) return junk
    return JSON.stringify({
      time: 1_760_104_536_000 + 7 * i,
      ip: '203.0.113.7',
      path: '/',
      'user-agent': agent,
    })
  })
  const contents = [`${text.join('\n')}\n`, JSON.stringify(one, null, 1), JSON.stringify(other)].map((each) =>
    Buffer.from(each),
  )
  names.forEach((path, i) => writeFileSync(join(folder, path), contents[i]!))
  const [how = '', index] = out?.split(' ') ?? []
  const target = index === undefined ? 'out.jsonl' : names[Number(index)]!
  rmSync(join(folder, 'link'), { force: true })
  if (how === 'hard') linkSync(join(folder, target), join(folder, 'link'))
  if (how === 'soft') symlinkSync(join(folder, target), join(folder, 'link'))
  const outPath = how === 'hard' || how === 'soft' ? 'link' : target
  const paths = { check: [file], replay: [logPath, file], suggest: [logPath] }[command]
  const own = flags.filter((flag) => flag === '--json' || (flag === '--strict') === (command === 'check'))
  const args = [command, ...paths, ...own]
  if (isCompared && command !== 'suggest') args.push(`--against=${against}`)
  if (out !== undefined && command === 'replay') args.push(`--out=${outPath}`)
  if (option !== null && command !== 'check') args.push(`${option[0]}=${option[1]}`)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  jest.spyOn(process, 'stdout', 'get').mockReturnValue(stdout as unknown as typeof process.stdout)
  jest.spyOn(process, 'stderr', 'get').mockReturnValue(stderr as unknown as typeof process.stderr)
  const known = process.listeners('exit')
  const status = await main(['node', 'sluice', ...args], '0.0.0')
  // Each command expects to be the last of its process, at whose exit it removes its file.
  for (const remove of process.listeners('exit').filter((each) => !known.includes(each))) {
    process.off('exit', remove)
    remove(0)
  }
  jest.restoreAllMocks()
  const after = names.map((path) => readFileSync(join(folder, path)))
  return {
    status,
    args,
    stdout: String(stdout.read() ?? ''),
    stderr: String(stderr.read() ?? ''),
    isKept: after.every((each, i) => each.equals(contents[i]!) || (i === 2 && !isCompared)),
  }
}

it('what strangers have named moves no cursor, is no command, and overwrites nothing that is read', async () => {
  const cwd = process.cwd()
  const check = async (given: Scene) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-strangers-'))
    process.chdir(folder)
    try {
      const { status, args, stdout, stderr, isKept } = await run(given, folder)
      expect([[0, 1, 2, 3].includes(status), isKept, args, stderr]).toEqual([true, true, args, stderr])
      expect(stdout + stderr).not.toMatch(CONTROL)
      expect(stdout + stderr).not.toMatch(COMMAND)
      if (!args.includes('--json') || status > 1) return
      const { problems } = JSON.parse(stdout) as { problems?: readonly { readonly message: string }[] }
      if (!problems) return
      // Each problem is one line of text, whatever its names are.
      const lines = await run({ ...given, flags: given.flags.filter((flag) => flag !== '--json') }, folder)
      expect(lines.stdout.trimEnd().split('\n')).toHaveLength(problems.length + 1)
    } finally {
      jest.restoreAllMocks()
      process.chdir(cwd)
      rmSync(folder, { recursive: true })
    }
  }
  await fc.assert(fc.asyncProperty(scene, check), { numRuns: RUNS })
}, 120_000)
