// The environment of commands in another project: nothing that `npm run` says to its children, which is for
// npm alone, and for all of them the registry that npm is set to use.
import { spawnSync } from 'node:child_process'
import { npmOutput } from '../npm.js'

const registry = npmOutput(['config', 'get', 'registry']).trim()

/** @type {NodeJS.ProcessEnv} */
export const ENVIRONMENT = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm|yarn)_/i.test(name))),
  npm_config_registry: registry,
  YARN_NPM_REGISTRY_SERVER: registry.replace(/\/$/, ''),
  YARN_ENABLE_TELEMETRY: '0',
  YARN_ENABLE_IMMUTABLE_INSTALLS: 'false', // there is no lock in an empty project, in CI either
}

/**
 * Runs a program by Node in another project. What it says on stderr counts where it fails.
 * @param {string} cwd
 * @param {readonly string[]} args
 */
export function runIn(cwd, args) {
  const options = { cwd, env: ENVIRONMENT, timeout: 300_000, encoding: /** @type {const} */ ('utf8') }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options)
  return { failed: status !== 0, output: status === 0 ? stdout : stdout + stderr }
}

/**
 * Prints a line for what has run: the last that it said, or all of it where it failed. Returns whether it passed.
 * @param {string} what @param {{ failed: boolean, output: string }} ran
 */
export function report(what, { failed, output }) {
  const said = failed ? output.trim() : output.trim().split('\n').at(-1)
  console.log(`${failed ? '✗' : '✓'} ${what}: ${said}`)
  return !failed
}
