import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { guard, release } from './guard.js'

/** One run of a server's program, ended through its own handle and never found by name. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  /** `folder` is for what the server writes; `owner` is whom it is run as, if not as this process. */
  constructor(program: string, args: readonly string[], folder: string, owner?: Owner) {
    // Ctrl-C in a terminal does not reach it: its users may still need it to end in order.
    const child = spawn(program, args, { cwd: folder, stdio: 'ignore', detached: true, ...owner })
    this.#child = child
    this.#ended = once(child, 'exit').catch(() => {})
    child.on('exit', () => release(child))
    child.on('error', () => {})
    if (child.pid !== undefined) guard(child, folder)
    child.unref()
  }

  /** The process id; -1 if the program could not be started. */
  get pid(): number {
    return this.#child.pid ?? -1
  }

  /** Whether it was started and has not ended. */
  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Sends a signal to the process if it runs. */
  signal(name: NodeJS.Signals): void {
    if (this.running) this.#child.kill(name)
  }

  /** Ends the process by SIGTERM, and by SIGKILL if it has not exited a second later. A stopped one is woken first. */
  async stop(): Promise<void> {
    this.signal('SIGCONT')
    const timer = setTimeout(() => this.signal('SIGKILL'), 1000)
    await this.end('SIGTERM')
    clearTimeout(timer)
  }

  /** Sends a signal and resolves when the process is gone. Until then it keeps this process alive, which it does not otherwise. */
  async end(name: NodeJS.Signals): Promise<void> {
    this.signal(name)
    if (!this.running) return
    this.#child.ref()
    await this.#ended
  }
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

export const LOG = 'server.log'

/** The end of the log in a server's folder, for messages about one that did not start. */
export function logOf(folder: string): string {
  const file = join(folder, LOG)
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-5).join('\n') : 'no log'
}

/** Removes a folder with all that is in it; one that is gone is no error. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

/** The program that servers are started from. @throws where there is none, which skips a test without Redis. */
export function program(): string {
  const named = process.env.SLUICE_REDIS_SERVER
  if (named) return named
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = ['redis-server', 'valkey-server'].find((name) =>
    folders.some((folder) => existsSync(join(folder, name))),
  )
  if (!found) throw new NoRedisError()
  return found
}

/** Skips a test where `npm test` has found no server: without-redis.js knows it by its code. */
class NoRedisError extends Error {
  readonly code = 'NO_REDIS'

  constructor() {
    super('There is no redis-server or valkey-server in PATH')
  }
}
