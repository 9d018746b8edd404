// What a subject starts on loopback, and stops by its handle: programs of Debian, in a folder of their own, and servers of this process.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

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

/**
 * The same with a configuration, whose file the arguments name.
 * @param {string} program @param {string} folder @param {string} text @param {(file: string) => readonly string[]} args @param {number} port
 */
export function configured(program, folder, text, args, port) {
  const file = join(folder, `${program}-${port}.cfg`)
  writeFileSync(file, text)
  return started(program, args(file), port)
}

/** A server of this process, which ends with all of its connections. @param {import('node:http').Server} server */
export async function listening(server) {
  const sockets = new Set()
  server.on('connection', (socket) => sockets.add(socket))
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const stop = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
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
