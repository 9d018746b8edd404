// Runs what README says to run as somebody would who has just cloned the repository: a user made for it, without root and
// without a Redis in PATH: npm run verify -- newcomer. The user and all files are removed again. Needs root on Linux, and
// says so elsewhere. Exit 1 when a command fails, or when the tests do not say what they skipped for want of Redis.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { npmProgram } from '../npm.js'
import { ENVIRONMENT } from '../release/environment.js'

/** README's two commands, and the longest that each part may take in milliseconds. @type {[string[], number][]} */
const COMMANDS = [
  [['ci'], 600_000],
  [['start'], 120_000],
  [['test'], 900_000],
]
const SERVERS = /^(?:redis|valkey)-/
const SKIPPED = 'skipped every test that starts a Redis server'
/** Lines shown of what a command says, when it passes. */
const LINES = 12

if (process.platform === 'linux' && process.getuid?.() === 0) process.exitCode = (await asNewcomer()) ? 0 : 1
else console.log('skipped: making a user needs root on Linux')

async function asNewcomer() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-newcomer-'))
  const name = `sluice-${process.pid}`
  chmodSync(folder, 0o755)
  execFileSync('useradd', ['--create-home', '--base-dir', folder, '--shell', '/bin/sh', name])
  try {
    const home = join(folder, name)
    const clone = join(home, 'sluice')
    execFileSync('git', ['clone', '--quiet', process.cwd(), clone])
    execFileSync('chown', ['-R', `${name}:`, home])
    const commit = execFileSync('git', ['log', '-1', '--format=%h %s'], { encoding: 'utf8' })
    console.log(`as ${name}, with commit ${commit.trim()}`)
    const env = { ...ENVIRONMENT, HOME: home, USER: name, PATH: withoutServers(join(folder, 'bin')) }
    const [uid, gid] = [idOf(name, '-u'), idOf(name, '-g')]
    for (const [args, longestMs] of COMMANDS) {
      if (!(await runs(args, longestMs, { cwd: clone, env, uid, gid }))) return false
    }
    return true
  } finally {
    execFileSync('userdel', [name])
    rmSync(folder, { recursive: true })
  }
}

/**
 * @param {string} name
 * @param {'-u' | '-g'} which
 */
function idOf(name, which) {
  return Number(execFileSync('id', [which, name], { encoding: 'utf8' }))
}

/**
 * A folder with a link to each program of PATH but servers.
 * @param {string} folder
 */
function withoutServers(folder) {
  mkdirSync(folder)
  const linked = new Set()
  for (const path of (process.env.PATH ?? '').split(delimiter)) {
    for (const program of programsIn(path)) {
      if (linked.has(program) || SERVERS.test(program)) continue
      linked.add(program)
      symlinkSync(join(path, program), join(folder, program))
    }
  }
  return folder
}

/** @param {string} path */
function programsIn(path) {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/**
 * Runs npm, prints the end of what it says, and ends it with all that it has started if it takes too long.
 * @param {string[]} args
 * @param {number} longestMs
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, uid: number, gid: number }} as
 */
async function runs(args, longestMs, as) {
  const began = performance.now()
  const child = spawn(process.execPath, [npmProgram(), ...args], {
    ...as,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => void (output += text))
  }
  const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), longestMs)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  const lacks = args[0] === 'test' && !output.includes(SKIPPED) ? `, and it does not say "${SKIPPED}"` : ''
  const passed = code === 0 && lacks === ''
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  console.log(
    output
      .trimEnd()
      .split('\n')
      .slice(passed ? -LINES : -10 * LINES)
      .join('\n'),
  )
  console.log(
    `${passed ? '✓' : '✗'} npm ${args.join(' ')}: ended with ${code ?? child.signalCode}${lacks}, in ${seconds} s\n`,
  )
  return passed
}
