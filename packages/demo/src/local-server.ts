import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/**
 * Starts a program that serves. A shell ends it when its own input closes, which it does however this process ends. Ctrl-C
 * does not reach them: the processes of a demo still need their servers then.
 */
export function startServer(program: string, args: readonly string[], cwd = tmpdir()): ChildProcess {
  const line = '"$0" "$@" & read -r _; kill $!; wait'
  return spawn('sh', ['-c', line, program, ...args], {
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
