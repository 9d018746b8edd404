import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { guard, release } from '../redis/guard.js'

/*
 * Postgres and PgBouncer refuse to run as root. A server of root's is run as the user that the packages made, or as nobody: its
 * folder belongs to that user.
 */
export const OWNER = process.getuid?.() === 0 ? ownerOf(['postgres', 'nobody']) : undefined

interface Owner {
  readonly uid: number
  readonly gid: number
}

function ownerOf(names: readonly string[]): Owner {
  for (const name of names) {
    try {
      const id = (which: string): number => Number(execFileSync('id', [which, name], { stdio: 'pipe' }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {
      // there is no such user
    }
  }
  throw new Error(`there is none of the users ${names.join()} to run a server as`)
}

/** A folder of a server, with its data and its log. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
  if (OWNER) chownSync(folder, OWNER.uid, OWNER.gid)
  return folder
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

/** The newest program of that name: in SLUICE_POSTGRES_BIN, in PATH, or where Debian keeps those of each version. */
export function programOf(name: string): string {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian).sort((one, other) => Number(other) - Number(one))
    : []
  const named = process.env.SLUICE_POSTGRES_BIN
  const folders = named
    ? [named, '/usr/sbin']
    : [
        ...versions.map((version) => join(debian, version, 'bin')),
        ...(process.env.PATH ?? '').split(delimiter),
        '/usr/sbin',
      ]
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
  if (!found) throw new NoPostgresError(name)
  return found
}

/** Skips a test where `npm test` has found no server: without-redis.js knows it by its code. */
class NoPostgresError extends Error {
  readonly code = 'NO_POSTGRES'

  constructor(name: string) {
    super(`There is no ${name} in PATH or /usr/lib/postgresql`)
  }
}

/** One run of a server program, ended through its own handle. */
export class OwnedProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  constructor(program: string, args: readonly string[], folder: string) {
    const options = { cwd: folder, stdio: 'ignore' as const, detached: true, ...OWNER }
    this.#child = spawn(program, args, options)
    const child = this.#child
    this.#ended = once(child, 'exit').catch(() => {})
    child.on('exit', () => release(child))
    child.on('error', () => {})
    if (child.pid !== undefined) guard(child, folder)
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

  /** Holds the event loop open until the process is gone, which a running one does not. */
  async end(name: NodeJS.Signals): Promise<void> {
    this.signal(name)
    if (!this.running) return
    this.#child.ref()
    await this.#ended
  }

  /** Its own child processes. */
  get children(): readonly number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && parentOf(name) === this.pid)
      .map(Number)
  }
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return undefined // it has ended
  }
}
