// The build of another commit: a worktree in a temporary folder that is removed when this process ends, however it ends.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** This checkout. */
export const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** The packages that are measured. */
const PACKAGES = ['core', 'http', 'express', 'machine', 'outbound', 'postgres']
const INSTALLED = 'node_modules'
/** Where the packages of a checkout itself are installed, as links. */
const OWN = '@sluice'
const LOCK = 'package-lock.json'
/** The scripts that write lua/ into the sources; the second in commits before scripts/ had folders. */
const EMBED = ['scripts/build/embed-lua.js', 'scripts/embed-lua.js']
const FINISH = 'scripts/build/finish-packages.js'
/** As shells say it; 1 says that a path missed the bar. */
const INTERRUPTED = 130

/**
 * Builds the packages of a commit that are measured.
 * @param {string} commit
 * @returns {string} the folder of its checkout
 */
export function buildOf(commit) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-before-')))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true })) // links, not what they lead to
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
    process.once(signal, () => process.exit(INTERRUPTED))
  run(root, 'git', ['worktree', 'add', '--quiet', '--detach', folder, commit])
  process.once('exit', () => run(root, 'git', ['worktree', 'remove', '--force', folder]))
  if (readFileSync(join(folder, LOCK), 'utf8') === readFileSync(join(root, LOCK), 'utf8'))
    linkInstalled(folder)
  else run(folder, 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  const embed = EMBED.find((path) => existsSync(join(folder, path)))
  if (embed === undefined) throw new Error(`${commit} has no script that embeds Lua`)
  run(folder, process.execPath, [embed])
  const projects = PACKAGES.flatMap((name) => [`packages/${name}`, `packages/${name}/tsconfig.cjs.json`])
  const parts = projects.filter((project) => existsSync(join(folder, project)))
  run(folder, process.execPath, [join(folder, 'node_modules/typescript/bin/tsc'), '-b', ...parts])
  // Since entries are bundled, these are what a package exports.
  if (existsSync(join(folder, FINISH))) run(folder, process.execPath, [FINISH])
  return folder
}

/** The short name of a commit. @param {string} ref @param {string} [folder] */
export function commitOf(ref, folder = root) {
  return run(folder, 'git', ['rev-parse', '--short', '--verify', `${ref}^{commit}`]).trim()
}

/** Whether files of this checkout differ from its commit. */
export function isChanged() {
  return run(root, 'git', ['status', '--porcelain']) !== ''
}

/**
 * Links what this checkout has installed, except its own packages: those of the other one need each other.
 * @param {string} folder
 */
function linkInstalled(folder) {
  const link = (/** @type {string} */ to, /** @type {string} */ name) =>
    symlinkSync(realpathSync(to), join(folder, INSTALLED, name), 'dir')
  mkdirSync(join(folder, INSTALLED, OWN), { recursive: true })
  for (const name of readdirSync(join(root, INSTALLED)))
    if (name !== OWN) link(join(root, INSTALLED, name), name)
  for (const name of PACKAGES) {
    const own = join(folder, 'packages', name)
    if (existsSync(own)) link(own, join(OWN, name))
  }
}

/**
 * @param {string} cwd
 * @param {string} program
 * @param {readonly string[]} args
 * @returns {string} what it printed
 */
function run(cwd, program, args) {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}
