import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { guard, release } from './guard.js'

/** One run of the server program, ended through its own handle and never found by name. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  constructor(args: readonly string[], directory: Directory) {
    // Ctrl-C in a terminal does not reach it: whoever uses it may still need it to end in order.
    const child = spawn(program(), args, { cwd: directory.path, stdio: 'ignore', detached: true })
    this.#child = child
    this.#ended = once(child, 'exit').catch(() => {})
    child.on('exit', () => release(child))
    child.on('error', () => {})
    if (child.pid !== undefined) guard(child, directory.path)
    child.unref()
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  signal(name: NodeJS.Signals): void {
    if (this.running) this.#child.kill(name)
  }

  /** SIGTERM, and SIGKILL for one that has not exited a second later. */
  async end(): Promise<void> {
    this.signal('SIGCONT')
    this.signal('SIGTERM')
    const timer = setTimeout(() => this.signal('SIGKILL'), 1000)
    await this.#exit()
    clearTimeout(timer)
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.#exit()
  }

  /** Holds the event loop open until the process is gone, which a running one does not. */
  async #exit(): Promise<void> {
    if (!this.running) return
    this.#child.ref()
    await this.#ended
  }
}

/** A folder for what a server writes, its log among them. */
export class Directory {
  readonly path = mkdtempSync(join(tmpdir(), 'sluice-redis-'))

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }

  /** The end of the log, for messages about a server that did not start. */
  log(): string {
    const file = join(this.path, LOG)
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-5).join('\n') : 'no log'
  }
}

export const LOG = 'server.log'

/** What servers are started from. @throws where there is none, which skips a test without Redis. */
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
