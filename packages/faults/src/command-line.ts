import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { LineSplitter } from '../../cli/src/logs/lines.js'
import { main } from '../../cli/src/terminal/main.js'

/** Names that strangers give to limiters, callers and files. */
const NAMES = [
  'a]',
  'a[0].b',
  '::error file=a::x',
  'x ##vso[task.complete]',
  '##[error]x',
  '+++ x',
  '\u001b[2Jx',
  'x\n::error::x\u202e',
]
const CONTROL = /[^\n\P{C}]|[\p{Zl}\p{Zp}]/u
const COMMAND = /##|^\s*::.*::|^\+\+\+/m

/** The mistakes of `sluice` with files that strangers have made and named: each is a text that says what went wrong. */
export async function wrongCommands(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-input-'))
  try {
    const wrong = [wrongLines()]
    for (const [i, name] of NAMES.entries()) wrong.push(await wrongNames(name, join(folder, String(i))))
    wrong.push(await wrongWrites(folder))
    return wrong.flat()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The mistakes of checks and replays of a file whose limiter has this name, and so has the caller of the log. */
async function wrongNames(name: string, path: string): Promise<string[]> {
  const policies = [{ algorithm: 'fixedWindow', limit: 1, window: '1h' }]
  const [own, other] = [`${path}.json`, `${path}.other.json`]
  const text = JSON.stringify({ limiters: { [name]: { policies, by: 'field:who' } } }, null, 1)
  writeFileSync(own, text)
  writeFileSync(other, JSON.stringify({ limiters: {} }))
  const call = JSON.stringify({ time: 1_760_104_536_000, ip: '203.0.113.7', who: name })
  writeFileSync(`${path}.log`, `${call}\n${call}\n${name}\n`)
  const commands = [
    ['check', own],
    ['check', own, '--against', own],
    ['check', other, '--against', own],
    ['check', own, '--json'],
    ['replay', `${path}.log`, own],
    ['replay', `${path}.log`, own, '--json'],
    ['suggest', `${path}.log`, '--by', 'field:who'],
    ['suggest', `${path}.${name.replaceAll('/', '')}`],
  ]
  const wrong: string[] = []
  for (const args of commands) {
    const { status, output } = await sluice(args)
    const isHarmless = !CONTROL.test(output) && !COMMAND.test(output)
    if (status > 3 || !isHarmless)
      wrong.push(`sluice ${JSON.stringify(args)}: ${status}, ${JSON.stringify(output)}`)
  }
  // The line of its smell is found by names, and not in a path that was made of them.
  const { output } = await sluice(['check', own, '--json'])
  const { problems } = JSON.parse(output) as { problems: readonly { code: string; line: number }[] }
  const [{ line } = { line: 5 }] = problems.filter(({ code }) => code === 'WINDOW_BOUNDARY')
  if (line !== 5) wrong.push(`the smell of limiter ${JSON.stringify(name)} is at line ${line}`)
  return wrong
}

/** The mistakes of a replay whose decisions would be written to what is read. */
async function wrongWrites(folder: string): Promise<string[]> {
  const [log, policies] = [join(folder, 'read.log'), join(folder, 'read.json')]
  const call = `${JSON.stringify({ time: 1_760_104_536_000, ip: '203.0.113.7' })}\n`
  writeFileSync(log, call)
  writeFileSync(policies, JSON.stringify({ limiters: {} }))
  symlinkSync(log, join(folder, 'soft'))
  linkSync(log, join(folder, 'hard'))
  const wrong: string[] = []
  for (const out of [log, policies, join(folder, 'soft'), join(folder, 'hard')]) {
    const { status } = await sluice(['replay', log, policies, '--out', out])
    if (status !== 2 || readFileSync(log, 'utf8') !== call) wrong.push(`replay wrote what it read: ${status}`)
    writeFileSync(log, call)
  }
  return wrong
}

/** The mistakes of a reader that keeps more of a refused line than it quotes. */
function wrongLines(): string[] {
  const kept = new LineSplitter().push(Buffer.from(`\0${'x'.repeat(100_000)}\n${'x'.repeat(300_000)}\n`))
  const lengths = kept.map((line) => (typeof line === 'string' ? line : line.text).length)
  return lengths.length === 2 && Math.max(...lengths) <= 1000
    ? []
    : [`of refused lines ${lengths.join(', ')} characters are kept`]
}

/** Runs the command in this process. Returns its exit code, and all that it printed. */
async function sluice(args: readonly string[]): Promise<{ status: number; output: string }> {
  const streams = ['stdout', 'stderr'] as const
  const own = streams.map((name) => Object.getOwnPropertyDescriptor(process, name)!)
  const printed = new PassThrough()
  for (const name of streams) Object.defineProperty(process, name, { configurable: true, value: printed })
  try {
    const status = await main(['node', 'sluice', ...args], '0.0.0')
    return { status, output: String(printed.read() ?? '') }
  } finally {
    for (const [i, name] of streams.entries()) Object.defineProperty(process, name, own[i]!)
  }
}
