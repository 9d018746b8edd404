import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RedisServer {
  readonly port: number
  stop(): Promise<void>
}

/**
 * Starts `redis-server` (or `valkey-server`) from PATH on a free port of 127.0.0.1, in a folder of its own, with nothing
 * kept on disk. Rejects where there is none.
 */
export async function startRedis(): Promise<RedisServer> {
  for (const program of ['redis-server', 'valkey-server']) {
    const started = await start(program)
    if (started) return started
  }
  throw new Error('found neither redis-server nor valkey-server: install one of them, or leave --redis out')
}

async function start(program: string): Promise<RedisServer | undefined> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-payments-'))
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  const child = spawn(program, args, { stdio: 'ignore', detached: true }) // Ctrl-C is not meant for it
  const stop = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null) {
      child.kill()
      await once(child, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', () => child.kill())
  const listening = await Promise.race([once(child, 'error').then(() => false), listens(child, port)])
  if (listening) return { port, stop }
  await stop()
  return undefined
}

async function listens(child: ChildProcess, port: number): Promise<boolean> {
  for (let attempt = 0; attempt < 200 && child.exitCode === null; attempt++) {
    if (await accepts(port)) return true
    await sleep(25)
  }
  return false
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
