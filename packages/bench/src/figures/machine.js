// Where and with what something was measured.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isIdle } from './verdict.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** The machine in a line. */
export function machine() {
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memory} GiB, ${process.platform} ${process.arch}`
}

/** The load by other programs: that of the last minute. */
export function loadNow() {
  return loadavg()[0] ?? 0
}

const PATIENCE_MS = 300_000
const LOOK_MS = 5000

/**
 * Waits until the machine is idle, as the part before has left a load behind, but no longer than five minutes.
 * @param {(line: string) => void} say
 * @returns {Promise<number>} the load at the end
 */
export async function machineAtRest(say) {
  const end = performance.now() + PATIENCE_MS
  if (!isIdle(loadNow())) say(`waits until the machine is idle, the load is ${loadNow().toFixed(1)}`)
  while (!isIdle(loadNow()) && performance.now() < end) await sleep(LOOK_MS)
  return loadNow()
}

/** Node, Sluice and the packages named. @param {readonly string[]} packages */
export function versions(packages) {
  const installed = packages.map((name) => `${name} ${versionOf(`node_modules/${name}`)}`)
  const sluice = `Sluice ${versionOf('packages/core')}${commit()}`
  return [`Node ${process.versions.node}`, sluice, ...installed].join(', ')
}

/** @param {string} folder */
function versionOf(folder) {
  return String(JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8')).version)
}

function commit() {
  try {
    const options = { cwd: root, encoding: /** @type {const} */ ('utf8'), stdio: /** @type {any} */ ('pipe') }
    return ` (${execFileSync('git', ['rev-parse', '--short', 'HEAD'], options).trim()})`
  } catch {
    return ''
  }
}
