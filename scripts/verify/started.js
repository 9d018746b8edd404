// Programs of Debian that a subject starts on loopback, in a folder of their own, and stops by their handle.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'

process.env.PATH += ':/usr/sbin' // where Debian has its servers

/**
 * Starts a program and waits, at most 20 s, until something listens on its port.
 * @param {string} program @param {readonly string[]} args @param {number} port
 */
export async function started(program, args, port) {
  const child = spawn(program, args, { stdio: 'ignore' })
  for (let i = 0; i < 200 && !(await listens(port)); i++) await new Promise((done) => setTimeout(done, 100))
  const stop = async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return { port, origin: `http://127.0.0.1:${port}`, stop }
}

/** @param {string} program @param {string} flag */
export function versionBy(program, flag) {
  const { stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' })
  return /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0] ?? 'unknown'
}

/** @param {number} port @returns {Promise<boolean>} */
function listens(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
