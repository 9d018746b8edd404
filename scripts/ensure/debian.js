// Programs that the tests need and npm cannot bring: looked for in PATH, installed from Debian's or Ubuntu's packages
// where that is possible, that is as root and with apt-get.
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const INSTALL_SECONDS = 300

/**
 * Whether `program` can be run: a path, or a name in PATH.
 * @param {string} program
 */
export function isThere(program) {
  if (program.includes('/')) return isExecutable(program)
  return (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(join(folder, program)))
}

/**
 * Installs Debian packages. Returns undefined, or in a few words why not.
 * @param {string[]} packages
 */
export function install(packages) {
  if (!isThere('apt-get')) return 'there is no apt-get here'
  if (process.getuid?.() !== 0) return 'installing needs root'
  console.log(`installing ${packages.join(' ')} with apt-get`)
  const options = ['-q', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120']
  return run('apt-get', '-q', 'update') ?? run('apt-get', 'install', ...options, ...packages)
}

/**
 * Runs a command in silence. Returns undefined, or how it failed.
 * @param {string} command
 * @param {string[]} args
 */
export function run(command, ...args) {
  const { status, error, stderr } = spawnSync(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: INSTALL_SECONDS * 1000,
  })
  if (status === 0) return undefined
  const lastLine = stderr.trimEnd().split('\n').at(-1)
  return `${command} failed: ${error?.message ?? (lastLine || `exit ${status}`)}`
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
