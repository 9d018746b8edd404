// What a subject starts on loopback, and stops by its handle: programs of Debian, and servers of this process.
import { freePort, ServerProcess, until } from '@sluice/harness/redis'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

process.env.PATH += ':/usr/sbin' // where Debian has its servers

/**
 * Starts a program on a free port and waits, at most 20 s, until it listens there. Its configuration is a file of the folder.
 * @param {string} program @param {string} folder @param {(port: number) => string} textOf
 * @param {(file: string, port: number) => readonly string[]} argsOf
 */
export async function started(program, folder, textOf, argsOf) {
  const port = await freePort()
  const file = join(folder, `${program}-${port}.cfg`)
  writeFileSync(file, textOf(port))
  const server = new ServerProcess(program, argsOf(file, port), folder)
  await until(`${program} on port ${port}`, () => listens(port), 20_000)
  return { port, origin: `http://127.0.0.1:${port}`, stop: () => server.stop() }
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

/** The version of one of Debian's packages; empty where it is not installed. @param {string} name */
export function versionOfPackage(name) {
  return spawnSync('dpkg-query', ['-W', '-f', '${Version}', name], { encoding: 'utf8' }).stdout ?? ''
}

/** @param {number} port @returns {Promise<boolean>} */
export function listens(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
