import { Ajv2020 } from 'ajv/dist/2020.js'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os, { devNull, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import { main } from '../src/terminal/main.js'
import { OTHERS } from '../src/terminal/others.gen.js'
import { percent } from '../src/terminal/page.js'
import { lineAt } from './bytes.js'

/** The command as it is published: the tests run after the build. */
const COMMAND = join(__dirname, '../bin/sluice.js')
const S = 1_760_104_536
const LOG = Array.from({ length: 400 }, (_, i) =>
  lineAt(S + Math.floor(i / 2), `10.0.0.${i % 3 === 0 ? 1 : i % 40}`, i % 50 === 0 ? 429 : 200),
)
const POLICIES = (limit: number, more = {}): string =>
  JSON.stringify({
    limiters: { api: { policies: [{ algorithm: 'slidingLog', limit, window: '10s' }], ...more } },
  })

/** The policies of a plan. */
const plan = (limit: number) => [{ algorithm: 'slidingLog', limit, window: '10s' }]

/** Interrupts the process as Ctrl-C does, once it reads stdin. */
const INTERRUPTS = `data:text/javascript,${encodeURIComponent(`
  const read = process.stdin.read
  process.stdin.read = function (...args) {
    setImmediate(() => process.kill(process.pid, 'SIGINT'))
    process.stdin.read = read
    return read.apply(this, args)
  }`)}`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  writeFileSync(join(folder, 'access.log'), LOG.join(''))
  writeFileSync(join(folder, 'strict.json'), POLICIES(2))
  writeFileSync(join(folder, 'loose.json'), POLICIES(100))
  writeFileSync(join(folder, 'wrong.json'), POLICIES(0.5))
  writeFileSync(join(folder, 'in-app.json'), POLICIES(2, { where: 'status=401', by: 'field:user' }))
  writeFileSync(join(folder, 'plans.json'), POLICIES(2, { plans: { pro: plan(100) } }))
  writeFileSync(join(folder, 'strict-pro.json'), POLICIES(100, { plans: { pro: plan(2) } }))
  writeFileSync(join(folder, 'smelly.json'), POLICIES(2).replace('slidingLog', 'fixedWindow'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function sluice(
  args: readonly string[],
  input: string | Buffer = '',
): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, COLUMNS: '80', NO_COLOR: '' }
  const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, ...args], {
    cwd: folder,
    input,
    encoding: 'utf8',
    env,
  })
  return { status, stdout, stderr }
}

/** The command in this process, which begins no other. `process` is this file's own. */
async function inHere(args: readonly string[]): Promise<ReturnType<typeof sluice>> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  jest.spyOn(process, 'stdout', 'get').mockReturnValue(stdout as unknown as typeof process.stdout)
  jest.spyOn(process, 'stderr', 'get').mockReturnValue(stderr as unknown as typeof process.stderr)
  const cwd = process.cwd()
  process.chdir(folder)
  try {
    const status = await main(['node', 'sluice', ...args], '0.0.0')
    return { status, stdout: textOf(stdout), stderr: textOf(stderr) }
  } finally {
    process.chdir(cwd)
    jest.restoreAllMocks()
  }
}

function textOf(stream: PassThrough): string {
  return String(stream.read() ?? '')
}

describe('sluice option', () => {
  /** The rows of the table that is made from docs/migrate: name and package. */
  const table = readFileSync(join(__dirname, '../../../docs/migrate/README.md'), 'utf8').split(
    '## Every option',
  )[1]!
  const rows = [...table.matchAll(/^\| `(.+?)` \| \[(.+?)\]\(.+?\) \| (.+) \|$/gm)]

  it('finds every option of the table of docs/migrate', async () => {
    expect(rows.length).toBeGreaterThan(300)
    const found = OTHERS.map(([name, from]) => [name, from])
    expect(found).toEqual(rows.map(([, name, from]) => [name, from]))
    for (const [, , , here] of OTHERS) expect(table).toContain(here!.replaceAll('|', '\\|').split('](')[0]!)
  })

  it.each(['keyGenerator', 'KEYGENERATOR', 'points', 'requestPropertyName', 'getTokensRemaining'])(
    'prints what %s is called here, without an address of docs',
    async (name) => {
      const { status, stdout } = await inHere(['option', name])
      expect([status, stdout.toLowerCase()]).toEqual([0, expect.stringContaining(`  ${name.toLowerCase()}`)])
      expect(stdout).not.toMatch(/\]\(|\.md|https?:/)
    },
  )

  it('prints every package that has one of this name, and JSON on request', async () => {
    const { stdout } = await inHere(['option', 'blacklist', '--json'])
    const packages = JSON.parse(stdout).rows.map((row: { package: string }) => row.package)
    expect(new Set(packages)).toEqual(new Set(['rate-limiter-flexible', 'koa-ratelimit']))
  })

  it('suggests the nearest where no package has it, and ends with 1', async () => {
    const { status, stdout } = await inHere(['option', 'keyGenrator'])
    expect([status, stdout]).toEqual([
      1,
      "no other package is known to have 'keyGenrator'; did you mean 'keyGenerator'?\n",
    ])
  })
})

describe('suggest', () => {
  it.each(['access.log', 'missing.log', 'no.log'])('of %s leaves no file and no listener', async (log) => {
    const made = join(folder, 'made')
    mkdirSync(made)
    writeFileSync(join(folder, 'no.log'), 'nothing\n')
    const listeners = process.listeners('exit').length
    jest.spyOn(os, 'tmpdir').mockReturnValue(made)
    await inHere(['suggest', log])
    expect(readdirSync(made)).toEqual([])
    expect(process.listeners('exit')).toHaveLength(listeners)
    rmSync(made, { recursive: true })
  })
})

describe('the exit code', () => {
  it.each<[status: number, ...args: string[]]>([
    [0, 'suggest', 'access.log'],
    [0, 'replay', 'access.log', 'strict.json', '--fail-if', 'callers > 40'],
    [1, 'replay', 'access.log', 'strict.json', '--fail-if', 'callers > 40', '--fail-if', 'denied >= 1%'],
    [1, 'replay', 'access.log', 'strict.json', '--fail-if', 'lockout > 1s'],
    [0, 'check', 'strict.json'],
    [0, 'check', 'smelly.json'],
    [1, 'check', 'smelly.json', '--strict'],
    [1, 'check', 'wrong.json'],
    [0, 'check', 'strict.json', '--for', 'app'],
    [1, 'check', 'in-app.json', '--for', 'app'],
    [2, 'check', 'strict.json', '--for', 'nginx'],
    [2, 'check', 'strict.json', '--for'],
    [2, 'replay', 'access.log', 'strict.json', '--for', 'app'],
    [0, 'replay', 'access.log', 'plans.json', '--plan', 'pro'],
    [2, 'replay', 'access.log', 'plans.json', '--plan', 'Pro'],
    [2, 'replay', 'access.log', 'plans.json', '--plan'],
    [2, 'replay', 'access.log', 'strict.json', '--plan', 'pro'],
    [2, 'check', 'plans.json', '--plan', 'pro'],
    [2, 'check'],
    [2, 'sugest', 'access.log'],
    [2, '--jsn'],
    [2, 'suggest', 'access.log', '--windos', '1m'],
    [2, 'suggest', 'access.log', '--windows', '1 month'],
    [2, 'suggest', 'access.log', '--windows'],
    [2, 'suggest', 'access.log', '--limits', '0'],
    [2, 'suggest', 'access.log', '--limits', '5,200000'],
    [2, 'suggest', 'access.log', '--algorithm', 'gcra', '--burst', '2000000000', '--windows', '1h'],
    [2, 'suggest', 'access.log', '--burst', '5'],
    [2, 'suggest', 'access.log', '--where', 'pth=/a'],
    [2, 'suggest', 'access.log', '--by', 'user'],
    [2, 'suggest', 'access.log', '--format', 'apache'],
    [2, 'replay', 'access.log', 'strict.json', '--fail-if', 'denied > 1h'],
    [3, 'suggest', 'missing.log'],
    [3, 'suggest', 'strict.json'],
    [3, 'replay', 'access.log', 'wrong.json'],
    [3, 'replay', 'access.log', 'strict.json', '--out', 'missing/out.jsonl'],
    [0, '--help'],
    [0, '--version'],
  ])('is %i of %s', (status, ...args) => {
    const result = sluice(args)
    expect([result.status, result.stderr]).toEqual([
      status,
      status > 1 ? expect.stringMatching(/^sluice: /) : expect.any(String),
    ])
  })

  it.each([
    ['there is no command', 'sugest', "did you mean 'suggest'?"],
    ['there is no option', '--windos', "did you mean '--windows'?"],
    ['there is no option', '--jsn', "did you mean '--json'?"],
    ['there is no option', '--trust-prxy', "did you mean '--trust-proxy'?"],
    ['there is no option', '--frobnicate', "'sluice --help' lists all"],
  ])('comes with: %s %s; %s', async (what, name, advice) => {
    const args = name.startsWith('-') ? ['suggest', 'access.log', name, '1'] : [name]
    expect((await inHere(args)).stderr).toBe(`sluice: ${what} '${name}'; ${advice}\n`)
  })

  it('is 70 of a defect of ours, which asks for a report', async () => {
    const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true)
    const defect = () => Promise.resolve({ suggest: () => Promise.reject(new TypeError('planted')) })
    expect(await main(['node', 'sluice', 'suggest', 'access.log'], '0.0.0', defect)).toBe(70)
    expect(written.mock.calls.join('')).toMatch(
      /a defect of sluice, please report it: TypeError: planted\n.*at /s,
    )
    written.mockRestore()
  })

  it('is 0 where the reader of its output goes away', async () => {
    const child = spawn(process.execPath, [COMMAND, 'suggest', 'access.log'], { cwd: folder })
    child.stdout.destroy()
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(0)
  })

  it('is 0 where the reader of its decisions goes away', async () => {
    const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true)
    const broken = Object.assign(new Error('broken pipe, write'), { code: 'EPIPE' })
    const replay = () => Promise.reject(broken)
    expect(await main(['node', 'sluice', 'replay'], '0.0.0', () => Promise.resolve({ replay }))).toBe(0)
    expect(written).not.toHaveBeenCalled()
    written.mockRestore()
  })

  it('is 130 after Ctrl-C, with what was found so far', async () => {
    const child = spawn(process.execPath, [COMMAND, 'suggest', '--json'], { cwd: folder })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    const ended = new Promise((resolve) => child.once('close', resolve))
    await new Promise((resolve) => child.stdin.write(LOG.join('').repeat(300), resolve)) // more than a pipe holds: it was read
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(JSON.parse(output)).toMatchObject({ basis: { complete: false } })
  })
})

describe('Ctrl-C', () => {
  it.each([
    ['check', '-'],
    ['replay', 'access.log', '-'],
    ['suggest', '-'],
  ])('ends %s while it waits for stdin', async (...args) => {
    const child = spawn(process.execPath, ['--import', INTERRUPTS, COMMAND, ...args], { cwd: folder })
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(130)
  })
})

describe('arguments that cannot be meant are refused:', () => {
  it.each<[args: string, message: string]>([
    ["suggest ''", "'suggest ' has no value"],
    ["suggest access.log --untouched ''", "'--untouched ' has no value"],
    ["suggest access.log --untouched ' '", "'--untouched  ' has no value"],
    ['suggest access.log --untouched=', "'access.log --untouched=' has no value"],
    ["suggest access.log --trust-proxy ''", "'--trust-proxy ' has no value"],
    ["replay access.log strict.json --out ''", "'--out ' has no value"],
    ["replay access.log strict.json --against ''", "'--against ' has no value"],
    ["check ''", "'check ' has no value"],
    ['suggest access.log --untouched', 'option `--untouched <percent>` value is missing'],
    ['suggest access.log --untouched=-1', "expected a number from 0 to 100, got '-1'"],
    ['suggest access.log --untouched -1', "there is no option '-1'; 'sluice --help' lists all"],
    ['suggest access.log --untouched 100.1', "expected a number from 0 to 100, got '100.1'"],
    ['suggest access.log --untouched NaN', "expected a number from 0 to 100, got 'NaN'"],
    ['suggest access.log --untouched 0x10', "expected a number from 0 to 100, got '0x10'"],
    ['suggest access.log --trust-proxy 1.5', "expected a whole number from 0 to 100, got '1.5'"],
    ['suggest access.log --trust-proxy 1e1', "expected a whole number from 0 to 100, got '1e1'"],
    ['suggest access.log --algorithm gcra --burst 1.5', 'expected a whole number from 1 to'],
    ['suggest access.log --algorithm gcra --burst 0', 'expected a whole number from 1 to'],
    ['suggest access.log --limits=-5', 'expected a whole number from 1 to'],
    ['suggest access.log --limits 5,,6', 'expected a whole number from 1 to'],
    ['suggest access.log --windows 1m,', '--windows must be a whole number of milliseconds or a text'],
    ['suggest access.log --windows 0s', '--windows must be a whole number of milliseconds or a text'],
    ['suggest access.log --skew=-5s', '--skew must be a whole number of milliseconds or a text'],
    ['suggest access.log --cost field:', "expected field:PATH, got 'field:'"],
    ['suggest access.log --field tmie=ts', 'expected NAME=PATH, once for each of time, ip,'],
    ['suggest access.log --field ip=', 'expected NAME=PATH, once for each of time, ip,'],
    ['suggest access.log --field ip=a --field ip=b', 'expected NAME=PATH, once for each of time, ip,'],
    ['suggest access.log --by ip --by header:a', '--by is given more than once'],
    ['suggest access.log --trust-proxy 1 --trust-proxy 2', '--trust-proxy is given more than once'],
    ['suggest access.log --json --json', '--json is given more than once'],
    ['suggest access.log --hash-keys=yes', "'yes' is given to a flag that takes no value"],
    ['suggest access.log --no-json', "there is no option '--no-json'; did you mean '--json'?"],
    ['check strict.json --strict=false', "'false' is given to a flag that takes no value"],
    ['check strict.json loose.json', 'Unused args: `loose.json`'],
    ['suggest - -', 'stdin (-) is given twice'],
    ['replay - -', 'stdin (-) is given twice'],
    ['check - --against=-', 'stdin (-) is given twice'],
    ['replay -', 'stdin (-) is given twice'],
    ['replay strict.json --against -', 'stdin (-) is given twice'],
    ["replay access.log strict.json --fail-if 'callers > -1'", '--fail-if takes'],
    ['replay', "replay needs a policy file behind the logs, as in 'sluice replay access.log policies.json'"],
    ['replay access.log', "expected a policy file behind the logs, as in 'sluice replay access.log policies"],
    ['replay strict.json access.log', "access.log policies.json', got 'access.log'"],
    ['replay access.log strict.json --against access.log', "access.log policies.json', got 'access.log'"],
  ])('%s', async (args, message) => {
    const words = [...args.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)
    const { status, stdout, stderr } = await inHere(words)
    expect([status, stdout, stderr.startsWith('sluice: '), stderr]).toEqual([
      2,
      '',
      true,
      expect.stringContaining(message),
    ])
  })
})

describe('what is read is not written:', () => {
  it.each([
    ['the log itself', 'replay read.log strict.json --out read.log'],
    ['another path of it', 'replay ./read.log strict.json --out ../FOLDER/read.log'],
    ['a link to it', 'replay read.log strict.json --out soft'],
    ['a hard link to it', 'replay read.log strict.json --out hard'],
    ['the link that is read', 'replay soft strict.json --out read.log'],
    ['one of several', 'replay access.log hard strict.json --out soft'],
    ['stdin', 'replay - strict.json --out read.log'],
    ['stdin, without a log', 'replay strict.json --out soft'],
    ['stdin by its name', 'replay - strict.json --out /dev/stdin'],
    ['the policy file', 'replay access.log read.json --out read.json'],
    ['the other policy file', 'replay access.log strict.json --against read.json --out read.json'],
  ])('%s', (_, command) => {
    const [log, file] = [LOG.join(''), POLICIES(2)]
    writeFileSync(join(folder, 'read.log'), log)
    writeFileSync(join(folder, 'read.json'), file)
    for (const link of ['soft', 'hard']) rmSync(join(folder, link), { force: true })
    symlinkSync('read.log', join(folder, 'soft'))
    linkSync(join(folder, 'read.log'), join(folder, 'hard'))
    const stdin = openSync(join(folder, 'read.log'), 'r')
    const args = command.replace('FOLDER', basename(folder)).split(' ')
    const { status, stderr } = spawnSync(process.execPath, [COMMAND, ...args], {
      cwd: folder,
      stdio: [stdin, 'pipe', 'pipe'],
      encoding: 'utf8',
    })
    closeSync(stdin)
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/^sluice: '.+' is read, so it cannot be written\n$/),
    ])
    expect(readFileSync(join(folder, 'read.log'), 'utf8')).toBe(log)
    expect(readFileSync(join(folder, 'read.json'), 'utf8')).toBe(file)
  })

  it.each([
    ['suggest', 'read.log'],
    ['replay', 'read.log', 'strict.json'],
    ['check', 'read.json'],
    ['check', 'strict.json', '--against', 'read.json'],
  ])('%s %s, when stdout is appended to it', (...args) => {
    const read = join(folder, args.at(args.includes('replay') ? 1 : -1)!)
    const content = read.endsWith('.log') ? LOG.join('') : POLICIES(2)
    writeFileSync(read, content)
    const stdout = openSync(read, 'a')
    const { status } = spawnSync(process.execPath, [COMMAND, ...args], {
      cwd: folder,
      stdio: ['ignore', stdout, 'pipe'],
    })
    closeSync(stdout)
    expect([status, readFileSync(read, 'utf8')]).toEqual([2, content])
  })

  it('but a device may be both, and decisions of before stay where no log can be read', () => {
    const { status } = spawnSync(process.execPath, [COMMAND, 'suggest', devNull], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    expect(status).toBe(0)
    writeFileSync(join(folder, 'before.jsonl'), 'kept')
    for (const log of ['missing.log', 'strict.json'])
      expect(sluice(['replay', log, 'strict.json', '--out', 'before.jsonl']).status).toBe(3)
    expect(readFileSync(join(folder, 'before.jsonl'), 'utf8')).toBe('kept')
    expect(sluice(['replay', 'missing.log', 'strict.json', '--out', 'missing.log']).status).toBe(3)
    expect(existsSync(join(folder, 'missing.log'))).toBe(false)
  })
})

describe('arguments are taken as they are written:', () => {
  it.each([
    ['files with the names of numbers', 'suggest', '007'],
    ['files with the names of commands', 'suggest', 'check'],
    ['files behind --', 'suggest', '--', '-x.log'],
    ['a flag without a value in front of a file', 'suggest', '--hash-keys', '007'],
    ['a value behind =', 'suggest', '007', '--by=ip', '--where=path!=a=b'],
  ])('%s', async (_, ...args) => {
    for (const name of ['007', 'check', '-x.log']) writeFileSync(join(folder, name), lineAt(S))
    const { status, stdout } = await inHere(args)
    expect([status, stdout]).toEqual([0, expect.stringContaining('\n1 line = 1 read')])
  })
})

describe('input', () => {
  it('comes from stdin, packed or not', () => {
    const plain = sluice(['suggest', '--json'], LOG.join(''))
    const packed = sluice(['suggest', '-', '--json'], gzipSync(LOG.join('')))
    expect(packed).toEqual(plain)
    expect(JSON.parse(plain.stdout)).toMatchObject({
      basis: { lines: 400, read: 400, formats: { stdin: 'common' } },
    })
  })

  it('that is a folder is an error with its name', () => {
    const { status, stderr } = sluice(['suggest', 'access.log', folder])
    expect([status, stderr]).toEqual([3, expect.stringMatching(`^sluice: ${folder}: EISDIR`)])
  })

  it('without a line gives a report of none', () => {
    const { status, stdout } = sluice(['suggest', '--windows', '1m'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^0 calls of 0 callers.*\nformat: none, without a line; /)
    expect(stdout).toMatch(/\n0 lines = 0 read \+ 0 skipped\n$/)
    expect(stdout).not.toContain('\n\n\n')
  })

  it('that is packed and ends too early is read up to there', () => {
    const bytes = gzipSync(LOG.join(''))
    const { status, stdout } = sluice(['suggest', '--json'], bytes.subarray(0, bytes.length - 60))
    const { basis } = JSON.parse(stdout) as {
      basis: { lines: number; read: number; skipped: Record<string, { count: number }> }
    }
    expect(status).toBe(0)
    expect(basis.skipped['cut off']).toMatchObject({ count: 1 })
    expect([basis.lines - basis.read, basis.read > 100]).toEqual([1, true])
  })

  it('that is packed and damaged is read up to there, whatever is damaged', () => {
    const bytes = gzipSync(Buffer.from(LOG.join('').repeat(20)))
    const middle = Buffer.from(bytes).fill(0x55, 4000, 4050)
    for (const damaged of [middle, Buffer.concat([bytes, Buffer.from('not packed')])]) {
      const { status, stdout } = sluice(['suggest', '--json'], damaged)
      const { basis } = JSON.parse(stdout) as { basis: { lines: number; skipped: object } }
      expect([status, basis.skipped]).toMatchObject([3, { 'cut off': { count: 1 } }])
      expect(basis.lines).toBeGreaterThan(2000)
    }
    writeFileSync(join(folder, 'first.gz'), Buffer.from([0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    const { status, stderr } = sluice(['suggest', 'first.gz'])
    expect([status, stderr]).toEqual([3, 'sluice: first.gz: unknown compression method\n'])
  })

  it.each([
    ['lines with a NUL', `\0${'x'.repeat(250_000)}`],
    ['long lines', 'é'.repeat(140_000)],
    ['lines that are valid', lineAt(S, '203.0.113.100').replace('GET /', `GET /${'x'.repeat(200_000)}`)],
  ])(
    'of 150 MB of %s, with short ones between them, fits into a heap of 40 MB',
    async (_, line) => {
      const heap = ['--max-old-space-size=40', '--max-semi-space-size=1']
      const child = spawn(process.execPath, [...heap, COMMAND, 'suggest', '--windows', '1m', '--json'], {
        cwd: folder,
      })
      const lines = Readable.from(
        Array.from({ length: 600 }, () => `${line.trimEnd()}\n${lineAt(S, '203.0.113.101')}`),
      )
      const [output] = await Promise.all([
        text(child.stdout),
        pipeline(lines, child.stdin),
        once(child, 'exit'),
      ])
      expect(JSON.parse(output)).toMatchObject({ basis: { lines: 1200 } })
    },
    60_000,
  )

  it('of which more than 1 % of the calls are not read is a report on a rest: exit code 3, and the first line', () => {
    const [one, other] = [0, 1].map((part) => LOG.slice(200 * part, 200 * (part + 1)).join(''))
    const newestFirst = `${other}${lineAt(S + 3600).repeat(2000)}${one}`
    const run = (...args: string[]) => sluice([...args, '--windows', '1m'], newestFirst)
    const { status, stdout, stderr } = run('suggest')
    expect([status, stdout.split('\n')[0]]).toEqual([
      3,
      '8.3 % of the lines that look like calls were not read: this is a report on the rest; give files as arguments, which are merged by time, or --skew',
    ])
    expect(stderr).toContain('8.3 %')
    expect(run('suggest', '--max-unread', '9').status).toBe(0)
    expect(run('suggest', '--max-unread', 'x').status).toBe(2)
    const replayed = sluice(['replay', '-', 'loose.json', '--fail-if', 'callers > 1000'], newestFirst)
    expect(replayed.status).toBe(3)
    expect(replayed.stdout).toMatch(/^8\.3 %/)
  })

  it('without a status has no share of denials, and no comparison with them', () => {
    const lines = Array.from({ length: 20 }, (_, i) =>
      JSON.stringify({ time: S + i, ip: '203.0.113.7', path: '/' }),
    )
    const { status, stdout } = sluice(['suggest'], lines.join('\n'))
    expect([status, stdout]).toEqual([0, expect.stringContaining('--field status=PATH')])
    expect(stdout).not.toMatch(/answered 429$/m)
    const compared = sluice(['replay', '-', 'loose.json', '--against', 'log'], lines.join('\n'))
    expect([compared.status, compared.stderr]).toEqual([
      3,
      expect.stringContaining("no field for 'status' was found"),
    ])
    const limited = sluice(['suggest', '--where', 'method=GET,host=shop.example'], lines.join('\n'))
    expect(limited.stderr).toContain(
      "no field for 'method', 'host' was found; name it with --field method=PATH --field host=PATH",
    )
  })

  it('of check comes from stdin too', () => {
    const { status, stdout } = sluice(['check', '-', '--against', 'loose.json'], POLICIES(3, { were: 'x' }))
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^stdin:1: error INVALID_OPTION at limiters\.api\.were: .*did you mean 'where'/),
    ])
  })
})

describe('a policy file', () => {
  it('with errors is reported together with the other one that has some', async () => {
    writeFileSync(join(folder, 'other.json'), POLICIES(0.7))
    const { status, stdout, stderr } = await inHere(['check', 'wrong.json', '--against', 'other.json'])
    expect([status, stdout]).toEqual([
      3,
      expect.stringMatching(/^wrong\.json:1: error INVALID_LIMIT .*\n1 error, 0 smells\n$/),
    ])
    expect(stderr).toMatch(/^sluice: other\.json:1: error INVALID_LIMIT .*\n$/)
    const replayed = await inHere(['replay', 'access.log', 'wrong.json', '--against', 'other.json'])
    expect(replayed.stderr).toMatch(/^sluice: wrong\.json:1: error .*\nother\.json:1: error .*\n$/)
  })

  it('is checked for an application, which has no status yet and no fields of a log', async () => {
    expect((await inHere(['check', 'in-app.json'])).stdout).toBe('0 errors, 0 smells\n')
    const { stdout } = await inHere(['check', 'in-app.json', '--for', 'app'])
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(
        /^in-app\.json:1: error NOT_IN_REQUEST at limiters\.api\.where: .*'status'.*shouldCharge/,
      ),
      expect.stringMatching(
        /^in-app\.json:1: smell NOT_IN_REQUEST at limiters\.api\.by: .*fields: \{ "user": \(req\)/,
      ),
      '1 error, 1 smell',
      '',
    ])
    const { stderr } = await inHere(['check', 'in-app.json', '--for', 'nginx'])
    expect(stderr).toBe("sluice: --for takes app, got 'nginx'\n")
  })

  it('is replayed with the policies of a plan, in the other file too', async () => {
    const isDenied = async (...args: string[]): Promise<boolean> => {
      const { stdout } = await inHere(['replay', 'access.log', ...args, '--json'])
      return JSON.parse(stdout).answers[0].limiters[0].denied > 0
    }
    expect(await isDenied('plans.json')).toBe(true)
    expect(await isDenied('plans.json', '--plan', 'pro')).toBe(false)
    const args = [
      'replay',
      'access.log',
      'strict-pro.json',
      '--plan',
      'pro',
      '--against',
      'plans.json',
      '--json',
    ]
    const [{ against }] = JSON.parse((await inHere(args)).stdout).answers
    expect([against.allowedToDenied > 0, against.deniedToAllowed]).toEqual([true, 0])
    const { stderr } = await inHere(['replay', 'access.log', 'plans.json', '--plan', 'Pro'])
    expect(stderr).toBe("sluice: no limiter of the policy file has a plan 'Pro'; the plans are 'pro'\n")
    const none = await inHere(['replay', 'access.log', 'strict.json', '--plan', 'pro'])
    expect(none.stderr).toBe("sluice: no limiter of the policy file has a plan 'pro'; it has no plans\n")
  })

  it('has any names of limiters and policies', async () => {
    const policiesOf = (...names: string[]) =>
      names.map((name) => ({ algorithm: 'slidingLog', limit: 1, window: '10s', name }))
    const odd = { 'a]': { policies: policiesOf('a]', 'constructor', '__proto__', 'key', 'text') } }
    writeFileSync(join(folder, 'odd.json'), JSON.stringify({ limiters: odd }))
    const { status, stdout } = await inHere(['check', 'strict.json', '--against', 'odd.json'])
    expect([status, stdout]).toEqual([0, expect.stringContaining('LOST_LIMITER at limiters["a]"]: ')])
    for (const name of ['constructor', '__proto__', 'key', 'text']) {
      writeFileSync(
        join(folder, 'odd.json'),
        JSON.stringify({ limiters: { api: { policies: policiesOf(name) } } }),
      )
      const replayed = await inHere(['replay', 'access.log', 'odd.json', '--hash-keys'])
      expect(replayed.stdout).toMatch(new RegExp(`\ndenied by ${name}: \\d+\n`))
    }
  })
})

describe('output', () => {
  it.each([
    '::error file=x::y',
    '  ::warning::y',
    '##[error]y',
    'x##vso[task.complete]y',
    "##teamcity[message text='x']",
    '--- y',
    '+++ y',
  ])('is no command to a CI: %s', async (name) => {
    const policies = [{ algorithm: 'slidingLog', limit: 2, window: '10s', name }]
    writeFileSync(
      join(folder, `${name}.json`),
      JSON.stringify({ limiters: { [name]: { policies, by: 'ipp' } } }),
    )
    const odd = await inHere(['check', `${name.startsWith('-') ? './' : ''}${name}.json`])
    writeFileSync(join(folder, 'named.json'), JSON.stringify({ limiters: { [name]: { policies } } }))
    const named = await inHere(['replay', 'access.log', 'named.json'])
    const missing = await inHere(['suggest', '--', `x\n${name}`])
    for (const { stdout, stderr } of [odd, named, missing]) {
      expect(stdout + stderr).toContain('y')
      expect(stdout + stderr).not.toMatch(/##|^\s*::|^---|^\+\+\+/m)
    }
    expect([odd.status, named.status, missing.status]).toEqual([1, 0, 3])
  })

  it('keeps the names of callers as they are, and in JSON all texts', async () => {
    const log = Array.from({ length: 60 }, (_, i) => lineAt(S + i, '::1')).join('')
    writeFileSync(join(folder, 'local.log'), log)
    expect((await inHere(['replay', 'local.log', 'strict.json'])).stdout).toContain('\n  ::/64  ')
    const name = '\u001b[2J\u0085\u202e\u2028\ud800 \udb40\udc01###vso[x]\n::error::x'
    writeFileSync(join(folder, 'odd.json'), JSON.stringify({ limiters: { [name]: { policies: [], x: 1 } } }))
    const { stdout } = await inHere(['check', 'odd.json', '--json'])
    expect(stdout).toMatch(/^[ -~]+\n$/)
    expect(stdout).not.toContain('##')
    const { problems } = JSON.parse(stdout) as { problems: readonly { path: string }[] }
    expect(problems[0]!.path).toBe(`limiters[${JSON.stringify(name)}]`)
  })

  it('says under --hash-keys what digests without a salt do not hide', async () => {
    for (const more of [[], ['--json']]) {
      const { status, stderr } = await inHere(['suggest', 'access.log', '--hash-keys', ...more])
      expect([status, stderr]).toEqual([
        0,
        expect.stringMatching(/^sluice: --hash-keys: digests have no salt, .*\n$/),
      ])
    }
  })

  it('ends with the sum of lines, and begins with what share was limited', async () => {
    const { stdout } = await inHere(['suggest', 'access.log'])
    expect(stdout).toMatch(/^2 % of the calls were answered 429: callers wanted more/)
    expect(stdout).toMatch(/\n400 lines = 400 read \+ 0 skipped\n$/)
    expect(stdout).not.toContain('\u001b')
    expect(Math.max(...stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  })

  it('of --help fits a terminal of 80 columns', () => {
    const help = [[], ['suggest'], ['replay'], ['check']].map((args) => sluice([...args, '--help']).stdout)
    const lines = help.flatMap((text) => text.split('\n'))
    expect(lines.length).toBeGreaterThan(40)
    expect(lines.filter(({ length }) => length >= 80)).toEqual([])
  })

  it('has no column that a remark makes wider', async () => {
    const { stdout } = await inHere(['suggest', 'access.log', '--windows', '1s,20s'])
    expect(stdout).toMatch(/\nwindow +limit {2,6}denied .*\n1s +this log is too coarse\n20s {2,}\d/)
  })

  it('of suggest ends with a policy file that the command after it takes', async () => {
    const { stdout } = await inHere(['suggest', 'access.log', '--where', 'path=/', '--skew', '10s'])
    const [, file, command] = /\n(\{"limiters"[^]*)\nnpx @sluice\/cli (.*)\n/.exec(stdout) ?? []
    writeFileSync(join(folder, 'policies.json'), file!)
    expect(command).toBe('replay access.log policies.json --skew 10s')
    expect((await inHere(command!.split(' '))).status).toBe(0)
    expect((await inHere(['check', 'policies.json'])).stdout).toBe('0 errors, 0 smells\n')
  })

  it('of suggest says what sets a caller apart whom a limit would deny, and what to write for him', async () => {
    const many = (address: string, make: (i: number) => readonly [path: string, agent: string]): string =>
      Array.from({ length: 200 }, (_, i) => {
        const [path, agent] = make(i)
        const line = lineAt(S + Math.floor(i / 4), address).replace('GET /', `GET ${path}`)
        return line.replace('\n', ` "-" "${agent}"\n`)
      }).join('')
    const others = Array.from({ length: 3000 }, (_, i) => lineAt(S + 49, `10.1.${i >> 8}.${i & 255}`)).join(
      '',
    )
    writeFileSync(
      join(folder, 'office.log'),
      many('203.0.113.1', (i) => [`/page/${i}`, `browser ${i % 9}`]),
    )
    writeFileSync(
      join(folder, 'login.log'),
      many('203.0.113.2', () => ['/login;id', 'x']),
    )
    writeFileSync(
      join(folder, 'scraper.log'),
      many('203.0.113.3', (i) => [`/page/${i}`, 'x']),
    )
    writeFileSync(join(folder, 'others.log'), others)
    const logs = ['office.log', 'login.log', 'scraper.log', 'others.log']
    const { stdout } = await inHere(['suggest', ...logs, '--windows', '10s', '--untouched', '99'])
    expect(stdout).toMatch(
      /203\.0\.113\.1: .*\n {4}9 user agents: if it is an office, count by a key, --by header:NAME\n/,
    )
    expect(stdout).toMatch(
      /203\.0\.113\.2: .*\n {4}asks for \/login;id alone: .* --where 'path=\/login;id'\n/,
    )
    expect(stdout).toMatch(
      /203\.0\.113\.3: .*\n {4}one program on many paths; if it is welcome, --where ip!=ADDRESS\n/,
    )
    expect(stdout).toContain('bars logarithmic')
  })

  it('quotes what a shell would take apart', async () => {
    writeFileSync(join(folder, "it's.log"), LOG.join(''))
    const args = ['suggest', "it's.log", '--format', 'common']
    const command = "\nnpx @sluice/cli replay 'it'\\''s.log' policies.json --format common"
    expect((await inHere(args)).stdout).toContain(`${command}\n`)
    expect((await inHere([...args, '--hash-keys'])).stdout).toContain(`${command} --hash-keys\n`)
  })

  it('writes each decision', async () => {
    expect(
      (await inHere(['replay', 'access.log', 'strict.json', '--out', 'out.jsonl', '--hash-keys'])).status,
    ).toBe(0)
    const lines = readFileSync(join(folder, 'out.jsonl'), 'utf8').trim().split('\n')
    expect(lines).toHaveLength(400)
    expect(JSON.parse(lines[0]!)).toEqual({
      time: '2025-10-10T13:55:36.250Z',
      limiter: 'api',
      key: expect.stringMatching(/^sha256:[\da-f]{16}$/) as string,
      cost: 1,
      allowed: true,
      policy: '2-per-10s',
      remaining: 1,
      retryAfterMs: 0,
    })
  })

  it('says what changes against the log and against other policies', async () => {
    const against = async (file: string) => {
      const { stdout } = await inHere(['replay', 'access.log', 'strict.json', '--against', file, '--json'])
      return (
        JSON.parse(stdout) as { answers: [{ against: { allowedToDenied: number; deniedToAllowed: number } }] }
      ).answers[0].against
    }
    expect(await against('strict.json')).toMatchObject({ allowedToDenied: 0, deniedToAllowed: 0 })
    const { allowedToDenied } = await against('loose.json')
    expect(allowedToDenied).toBeGreaterThan(0)
    expect((await against('log')).deniedToAllowed).toBeLessThanOrEqual(8)
  })

  it('fits its page, however long the names of callers are', () => {
    const agents = [`${'x'.repeat(300)}\u001b[2J\u202e`, 'curl']
    const time = (i: number) => new Date((S + i) * 1000).toISOString()
    const log = Array.from({ length: 200 }, (_, i) =>
      JSON.stringify({ time: time(i), ip: '10.0.0.1', 'user-agent': agents[i % 2] }),
    )
    writeFileSync(join(folder, 'agents.log'), log.join('\n'))
    const by = ['--by', 'header:user-agent']
    const pages = [
      sluice(['suggest', 'agents.log', ...by, '--limits', '1', '--windows', '10s', '--untouched', '0']),
      sluice(['replay', 'agents.log', 'strict.json', '--against', 'loose.json', ...by]),
    ]
    for (const { stdout } of pages) {
      expect(stdout).toMatch(/\n {2}x+…:? /)
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
      // oxlint-disable-next-line no-control-regex -- what must not be there
      expect(stdout).not.toMatch(/[\u001b\u202e]/)
    }
  })

  it('of suggest shows that between the peaks of usual callers and of others nobody is', () => {
    const line = (i: number, address: string) => lineAt(S + i, address)
    const log = Array.from({ length: 100 }, (_, i) => line(i, `10.0.0.${i}`) + line(i, '10.0.1.1'))
    const { stdout } = sluice(['suggest', '--windows', '30s'], log.join(''))
    expect(stdout).toMatch(/\n +1 █+ 100.*\n +2-3 0\n +4-7 0\n +8-15 0\n +16-31 █+ 1/)
  })

  it('names nobody in an error under --hash-keys, and moves no cursor', () => {
    const log = 'hello 203.0.113.7\u001b]0;\n'
    expect(sluice(['suggest'], log).stderr).toMatch(/ The first line is: hello 203\.0\.113\.7\?\]0;\n$/)
    for (const flag of ['--hash-keys', '--hashKeys'])
      expect(sluice(['suggest', flag], log).stderr).toMatch(/no format reads it \([a-z\d, -]+\)\.\n$/)
  })

  it('does not call nearly all callers all', () => {
    expect([1, 1 - 1 / 5000, 1 - 1 / 1_000_000, 342 / 5004, 0].map(percent)).toEqual([
      '100 %',
      '99.98 %',
      '99.9999 %',
      '6.8 %',
      '0 %',
    ])
  })

  it('holds no key under --hash-keys', () => {
    const { stdout } = sluice(['suggest', 'access.log', '--hash-keys', '--json'], LOG.join(''))
    expect(stdout).toContain('sha256:')
    expect(stdout).not.toMatch(/10\.0\.0\.\d/)
  })

  it('is of the published schema', async () => {
    const schema = JSON.parse(readFileSync(join(__dirname, '../report.schema.json'), 'utf8')) as object
    const validate = new Ajv2020({ strict: false }).compile(schema)
    for (const args of [
      ['suggest', 'access.log'],
      ['replay', 'access.log', 'strict.json', '--against', 'log'],
      ['check', 'smelly.json'],
    ]) {
      expect(validate(JSON.parse((await inHere([...args, '--json'])).stdout)) || validate.errors).toBe(true)
      expect(validate({ version: 1, command: args[0] })).toBe(false)
    }
  })
})
