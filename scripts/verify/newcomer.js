// Runs what README says to run as somebody would who has just cloned the repository: a user made for it, without root and
// without a Redis in PATH: npm run verify -- newcomer. The user and all files are removed again. Needs root on Linux, and
// says so elsewhere. Before that, or alone by `newcomer routes`, the first route of each adapter by the docs alone. Exit 1 when
// one does not limit, when a command fails, or when the tests do not say what they skipped for want of Redis.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { npmProgram } from '../npm.js'
import { ENVIRONMENT } from '../release/environment.js'
import { temporaryFolder } from '../temporary-folder.js'
import { firstRoutes } from './newcomer/routes.js'

/** README's commands, the longest that each may take in seconds, and what it has to say. @type {[string, number, string][]} */
const COMMANDS = [
  ['ci', 600, ''],
  ['start', 120, ''],
  ['test', 900, 'skipped every test that starts a Redis server'],
]
/** Lines shown of what a command says, when it passes. */
const LINES = 12

if (!(await firstRoutes())) process.exitCode = 1
if (process.argv[2] !== 'routes') {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    console.log('skipped: making a user needs root on Linux')
  else if (!asNewcomer()) process.exitCode = 1
}

function asNewcomer() {
  const folder = temporaryFolder('newcomer')
  const name = `sluice-${process.pid}`
  const home = join(folder, name)
  chmodSync(folder, 0o755)
  execFileSync('useradd', ['--create-home', '--base-dir', folder, '--shell', '/bin/sh', name])
  try {
    execFileSync('git', ['clone', '--quiet', process.cwd(), join(home, 'sluice')])
    execFileSync('chown', ['-R', `${name}:`, home])
    const commit = execFileSync('git', ['log', '-1', '--format=%h %s'], { encoding: 'utf8' })
    console.log(`as ${name}, with commit ${commit.trim()}`)
    const env = { ...ENVIRONMENT, HOME: home, USER: name, PATH: withoutServers(join(folder, 'bin')) }
    const [uid, gid] = ['-u', '-g'].map((which) => Number(execFileSync('id', [which, name])))
    return COMMANDS.every((command) => runs(command, { cwd: join(home, 'sluice'), env, uid, gid }))
  } finally {
    execFileSync('userdel', [name])
  }
}

/**
 * A folder with a link to each program of PATH but servers.
 * @param {string} folder
 */
function withoutServers(folder) {
  mkdirSync(folder)
  const linked = new Set()
  for (const path of (process.env.PATH ?? '').split(delimiter).filter((each) => existsSync(each))) {
    for (const program of readdirSync(path)) {
      if (linked.has(program) || /^(?:redis|valkey)-/.test(program)) continue
      linked.add(program)
      symlinkSync(join(path, program), join(folder, program))
    }
  }
  return folder
}

/**
 * Runs npm, prints the end of what it says, and ends it with all that it has started if it takes too long.
 * @param {typeof COMMANDS[number]} command
 * @param {import('node:child_process').SpawnSyncOptions} as
 */
function runs([command, seconds, says], as) {
  const began = performance.now()
  const args = ['-k', '10', `${seconds}`, process.execPath, npmProgram(), command]
  const { status, stdout } = spawnSync('timeout', args, {
    ...as,
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  })
  const output = String(stdout).trimEnd()
  const lines = output.split('\n')
  const lacks = output.includes(says) ? '' : `, and it does not say "${says}"`
  const passed = status === 0 && lacks === ''
  console.log(lines.slice(passed ? -LINES : -10 * LINES).join('\n'))
  const took = Math.round((performance.now() - began) / 1000)
  console.log(`${passed ? '✓' : '✗'} npm ${command}: ended with ${status}${lacks}, in ${took} s\n`)
  return passed
}
