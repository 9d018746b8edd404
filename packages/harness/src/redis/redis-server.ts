import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, command, info } from './command.js'
import { freePort } from './free-port.js'
import { LOG, logOf, program, removeFolder, ServerProcess } from './server-process.js'
import { until } from './until.js'

/** A real server of its own on loopback, killed at the latest when this process ends. It keeps no process alive. */
export interface RedisServer extends Address {
  /** Of the running server; another after a restart. */
  readonly pid: number
  /** Ends it within about a second, stopped or not, and removes its files. */
  stop(): Promise<void>
  /** SIGKILL; resolves when it is gone. `restart` brings it back. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  /** Starts it again on the same port, with what it had written to disk: by default nothing. Kills it if it runs. */
  restart(): Promise<void>
}

export interface RedisOptions {
  /** Arguments of the program, stronger than the defaults: `['--maxmemory', '3mb']`. */
  readonly args?: readonly string[]
}

/** Starts `redis-server` or `valkey-server` from PATH, or what SLUICE_REDIS_SERVER names, and waits until it answers. */
export function startRedis({ args = [] }: RedisOptions = {}): Promise<RedisServer> {
  return launch((port) => [...BASICS, '--port', String(port), ...args])
}

/** Starts a server with arguments made for its port and folder; the port `busOffset` above is free too. */
export async function launch(
  args: (port: number, folder: string) => readonly string[],
  busOffset = 0,
): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  let failure: unknown
  for (let attempt = 0; attempt < STARTS; attempt++) {
    const port = await freePort(busOffset)
    const line = args(port, folder)
    const start = () => startProcess(line, port, folder)
    try {
      return server(port, folder, start, await start())
    } catch (error) {
      failure = error // mostly: another took the port in between
    }
  }
  removeFolder(folder)
  throw failure
}

/** The server of a test over the process that runs now; `start` starts another one on the same port. */
function server(
  port: number,
  folder: string,
  start: () => Promise<ServerProcess>,
  first: ServerProcess,
): RedisServer {
  let current = first
  return {
    host: HOST,
    port,
    get pid() {
      return current.pid
    },
    async stop() {
      await current.stop()
      removeFolder(folder)
    },
    kill: () => current.end('SIGKILL'),
    pause: () => current.signal('SIGSTOP'),
    resume: () => current.signal('SIGCONT'),
    async restart() {
      await current.end('SIGKILL')
      current = await start()
    },
  }
}

/**
 * Starts a process and waits until it answers on the port.
 * @throws {Error} with the end of its log if it exits at once or does not answer in time; it is killed then.
 */
async function startProcess(args: readonly string[], port: number, folder: string): Promise<ServerProcess> {
  const started = new ServerProcess(program(), args, folder)
  try {
    await until(
      `a server on port ${port}`,
      async () => !started.running || (await answers(started, port)),
      START_MS,
    )
    if (started.running) return started
    throw new Error(`the server on port ${port} exited at once: ${logOf(folder)}`)
  } catch (error) {
    await started.end('SIGKILL')
    throw error
  }
}

/** Whether it is the process just started that answers on the port, and not another that was faster to take it. */
async function answers(started: ServerProcess, port: number): Promise<boolean> {
  const address = { host: HOST, port }
  try {
    await command(address, 'PING')
    return Number((await info(address, 'server')).process_id) === started.pid
  } catch (error) {
    return error instanceof Error && error.message.startsWith('NOAUTH')
  }
}

export const HOST = '127.0.0.1'
/** The settings of every server: no persistence, and a replica that asks is served at once instead of after 5 s. */
export const BASICS = ['--bind', HOST, '--save', '', '--repl-diskless-sync-delay', '0', '--logfile', LOG]
const STARTS = 4
const START_MS = 10_000
