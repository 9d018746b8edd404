// Programs that the tests need and npm cannot bring: looked for in PATH, and installed from Debian's or Ubuntu's packages
// where that is possible, that is as root and with apt-get.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

const INSTALL_SECONDS = 300

/** With spaces between those of which one is enough. */
const PROGRAMS = {
  redis: { programs: ['redis-server valkey-server'], packages: ['redis-server'] },
  lua: { programs: ['luacheck', 'lua5.1'], packages: ['lua-check', 'lua5.1'] },
  chromium: { programs: ['chromium chromium-browser google-chrome'], packages: ['chromium'] },
  prometheus: { programs: ['prometheus', 'promtool'], packages: ['prometheus'] },
  servers: {
    programs: ['nginx', 'apache2', 'lighttpd', 'haproxy', 'caddy', 'varnishd', 'squid'],
    packages: ['nginx-light', 'apache2', 'lighttpd', 'haproxy', 'caddy', 'varnish', 'squid'],
  },
  redisProxies: { programs: ['nutcracker', 'haproxy'], packages: ['nutcracker', 'haproxy'] },
  mariadb: { programs: ['mariadbd'], packages: ['mariadb-server-core'] },
  postgres: { programs: ['initdb', 'postgres', 'pgbouncer'], packages: ['postgresql', 'pgbouncer'] },
}

/** @typedef {keyof typeof PROGRAMS} Program */

/**
 * Returns undefined where the programs can be run, or why not and what to do.
 * @param {Program} name
 * @throws {Error} where SLUICE_REDIS_SERVER names what cannot be run: a mistake, and no machine without Redis.
 */
export function missingProgram(name) {
  const wanted = name === 'redis' && process.env.SLUICE_REDIS_SERVER
  if (wanted) {
    if (find(wanted)) return undefined
    throw new Error(`SLUICE_REDIS_SERVER must name a program that can be run, got ${wanted}`)
  }
  const { programs, packages } = PROGRAMS[name]
  const areThere = () => programs.every((each) => each.split(' ').some(find))
  if (areThere()) return undefined
  const why = install(packages) ?? (areThere() ? undefined : 'the package brought none into PATH')
  const one = programs.join(' ').replaceAll(' ', ' or ')
  const named = name === 'redis' ? '; macOS: brew install redis), or name one in SLUICE_REDIS_SERVER' : ')'
  return (
    why &&
    `there is no ${one} in PATH (${why}). Install it (Debian: apt-get install ${packages.join(' ')}${named}.`
  )
}

/**
 * Where the first of a need's programs is that can be run.
 * @param {Program} name
 */
export function programPath(name) {
  const names = PROGRAMS[name].programs.flatMap((each) => each.split(' '))
  return names.map(find).find((path) => path !== undefined)
}

/**
 * The path of a program that can be run, of which `program` is the path or the name in PATH; undefined without one.
 * @param {string} program
 */
function find(program) {
  const folders = program.includes('/')
    ? ['.']
    : [...(process.env.PATH ?? '').split(delimiter), ...unlisted()]
  return folders
    .map((folder) => resolve(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/** Folders of programs that Debian keeps out of PATH: each version of Postgres has its own, and daemons are root's. */
function unlisted() {
  const versions = '/usr/lib/postgresql'
  const folders = existsSync(versions) ? readdirSync(versions).map((name) => `${versions}/${name}/bin`) : []
  return [...folders, '/usr/sbin']
}

/**
 * Installs Debian packages, and ends the system services that they may have started: tests and checks start their own.
 * Returns undefined, or in a few words why not.
 * @param {readonly string[]} packages
 */
function install(packages) {
  if (!find('apt-get')) return 'there is no apt-get here'
  if (process.getuid?.() !== 0) return 'installing needs root'
  console.log(`installing ${packages.join(' ')} with apt-get`)
  const options = ['-q', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120']
  const why = run('apt-get', '-q', 'update') ?? run('apt-get', 'install', ...options, ...packages)
  for (const service of why ? [] : packages) {
    run('invoke-rc.d', service, 'stop')
    run('update-rc.d', service, 'disable')
  }
  return why
}

/**
 * Runs a command in silence. Returns undefined, or how it failed.
 * @param {string} command
 * @param {readonly string[]} args
 */
function run(command, ...args) {
  const { status, error, stderr } = spawnSync(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: INSTALL_SECONDS * 1000,
  })
  if (status === 0) return undefined
  return `${command} failed: ${error?.message ?? (stderr.trimEnd().split('\n').at(-1) || `exit ${status}`)}`
}
