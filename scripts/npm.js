// Runs npm from a script, on Windows too, where `npm` is a batch file that Node does not start.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/**
 * npm's program in JavaScript: the one that runs this script, or the one beside Node.
 * @returns {string}
 */
export function npmProgram() {
  const running = process.env.npm_execpath
  // Other package managers name themselves there.
  if (running && /npm-cli\.c?js$/.test(running)) return running
  const folder = dirname(process.execPath)
  const beside = [join(folder, 'node_modules'), join(folder, '../lib/node_modules')]
    .map((modules) => join(modules, 'npm/bin/npm-cli.js'))
    .find((path) => existsSync(path))
  if (!beside) throw new Error('there is no npm beside Node: run this script by npm')
  return beside
}

/**
 * Runs npm with the terminal of this process. Returns its exit code.
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
export function npm(args, cwd = '.') {
  return spawnSync(process.execPath, [npmProgram(), ...args], { stdio: 'inherit', cwd }).status ?? 1
}

/**
 * The output of npm. Throws where npm fails.
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
export function npmOutput(args, cwd = '.') {
  const command = [npmProgram(), ...args]
  return execFileSync(process.execPath, command, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/**
 * Packs a package, and returns what npm says of the tarball.
 * @param {string} folder
 * @param {readonly string[]} options
 * @returns {{ filename: string, size: number, unpackedSize: number, files: { path: string }[] }}
 */
export function npmPack(folder, ...options) {
  return JSON.parse(
    npmOutput(['pack', resolve(folder), '--json', '--ignore-scripts', '--offline', ...options]),
  )[0]
}
