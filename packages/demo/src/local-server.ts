import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** Runs the program that its arguments name, and ends it when its own input closes. */
const WATCHER = `
const [program, ...args] = process.argv.slice(1)
const server = require('node:child_process').spawn(program, args, { stdio: 'ignore' })
server.on('error', () => process.exit(1)).on('exit', (code) => process.exit(code ?? 0))
process.stdin.on('end', () => server.kill()).resume()
`

/**
 * Starts a program that serves, under a process that ends it when this one ends, however that happens. Ctrl-C does not reach
 * them: the processes of a demo still need their servers then.
 */
export function startServer(program: string, args: readonly string[], cwd = tmpdir()): ChildProcess {
  return spawn(process.execPath, ['-e', WATCHER, program, ...args], {
    cwd,
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
}

export async function stopServer(server: ChildProcess): Promise<void> {
  server.stdin?.end()
  if (server.exitCode === null) await once(server, 'exit')
}

export function isInPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
