import { PolicyError } from '@sluice/core'
import { digest, expected } from '@sluice/core/internal'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, linkSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { PROTOCOL } from './protocol.js'

/** Where the processes of one store meet. */
export interface MeetingPoint {
  /**
   * The address of the newest server, which may have ended; undefined if there was none.
   * @throws an error of the file system, or PolicyError if others could change what lies there.
   */
  newest(): string | undefined
  /** Listens, and becomes the newest after `former`. Undefined if another process was faster. */
  claim(listener: Server, former: string | undefined): Promise<Claim | undefined>
}

export interface Claim {
  /**
   * Whether no server came after this one, as far as it can be seen now. To be asked from time to time: somebody may delete the
   * files.
   */
  isNewest(): boolean
}

/**
 * A folder with one socket for each server that there has been, numbered from 1. The one with the highest number is the
 * newest; only that one serves.
 *
 * A process binds a socket of a name of its own, listens, and only then links it to the next number. The file system makes
 * that link for one process alone. So a socket with a number either is listened to or will never be again, and a connection
 * that is refused proves the second. Afterwards the process looks whether its number is the highest, and withdraws if not:
 * it was so slow that others had come and gone. Only the newest server deletes files, and only those of lower numbers. So
 * the highest number never falls, no number is the highest twice, and a socket is never taken from a process that lives.
 */
export class SocketFolder implements MeetingPoint {
  readonly #parent: string
  readonly #folder: string

  /** @throws {PolicyError} INVALID_OPTION if the path is too long for a socket, or the folder belongs to another user. */
  constructor(parent: string, name: string) {
    this.#parent = parent
    const isPlain = /^[\w.-]{1,24}$/.test(name)
    this.#folder = join(parent, isPlain ? `${PROTOCOL}-${name}` : `${PROTOCOL}~${digest(name).slice(0, 24)}`)
    const longest = Buffer.byteLength(join(this.#folder, LONGEST_NAME))
    if (longest > LONGEST_PATH) {
      const bound = `the path of a socket must be at most ${LONGEST_PATH} bytes: folder is too long by ${longest - LONGEST_PATH}`
      throw expected(PolicyError, 'INVALID_OPTION', bound, parent)
    }
    this.#prepare()
  }

  newest(): string | undefined {
    this.#prepare()
    const number = this.#highest()
    return number === 0 ? undefined : this.#at(number)
  }

  async claim(listener: Server, former: string | undefined): Promise<Claim | undefined> {
    const own = join(this.#folder, `.${randomBytes(6).toString('hex')}`)
    listener.listen({ path: own, exclusive: true }) // node:cluster shares handles otherwise
    await once(listener, 'listening')
    chmodSync(own, 0o600)
    const number = former === undefined ? 1 : 1 + numberOf(former.slice(this.#folder.length + 1))
    const path = this.#at(number)
    try {
      linkSync(own, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
      throw error
    } finally {
      rmSync(own, { force: true })
    }
    if (this.#highest() !== number) {
      rmSync(path, { force: true })
      return undefined
    }
    this.#deleteBefore(number)
    const { ino } = statSync(path)
    return { isNewest: () => this.#isNewest(path, number, ino) }
  }

  /**
   * Also marks the socket as used: services that clean up delete old temporary files. If `stat` fails for another reason, such as
   * no free descriptors, this process keeps serving: to step down would lose all state.
   */
  #isNewest(path: string, number: number, inode: number): boolean {
    try {
      const now = new Date()
      if (statSync(path).ino !== inode || this.#highest() !== number) return false
      utimesSync(path, now, now)
      return true
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'ENOENT'
    }
  }

  #at(number: number): string {
    return join(this.#folder, `${number}`)
  }

  #highest(): number {
    return Math.max(0, ...readdirSync(this.#folder).map(numberOf))
  }

  /** Also deletes sockets of processes that ended before they had a number. */
  #deleteBefore(number: number): void {
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name)
      if (name.startsWith('.') ? isOld(path) : numberOf(name) < number) rmSync(path, { force: true })
    }
  }

  /** @throws {PolicyError} INVALID_OPTION where another user owns a folder or could write to it. */
  #prepare(): void {
    for (const folder of [this.#parent, this.#folder]) {
      if (isOwnFolder(folder)) continue
      const bound = 'the folder of a machineStore must be a directory of this user with mode 0700'
      throw expected(PolicyError, 'INVALID_OPTION', bound, folder)
    }
  }
}

/** A named pipe of Windows. It ends with its process, and the system lets one process alone make it. */
export class NamedPipe implements MeetingPoint {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  newest(): string {
    return this.#path
  }

  async claim(listener: Server): Promise<Claim | undefined> {
    listener.listen({ path: this.#path, exclusive: true })
    try {
      await once(listener, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
      throw error
    }
    return { isNewest: () => true }
  }
}

/** Makes the folder if nothing is there. What cannot be made is not this user's. */
function isOwnFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const state = lstatSync(folder)
    return state.isDirectory() && state.uid === process.getuid?.() && (state.mode & 0o077) === 0
  } catch (error) {
    if (NO_FOLDER.has((error as NodeJS.ErrnoException).code!)) return false
    throw error
  }
}

/** The place is taken by something else, or belongs to others. */
const NO_FOLDER: ReadonlySet<string> = new Set([
  'EEXIST',
  'ENOTDIR',
  'ENOENT',
  'EACCES',
  'EPERM',
  'EROFS',
  'ELOOP',
  'ERR_INVALID_ARG_VALUE',
])

/** 0 for what is no number. */
function numberOf(name: string): number {
  return /^[1-9]\d{0,8}$/.test(name) ? Number(name) : 0
}

function isOld(path: string): boolean {
  const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
  return Date.now() - mtimeMs > 60_000
}

/** The address of a socket has room for 104 bytes on macOS and 108 on Linux, with a zero at the end. */
const LONGEST_PATH = 103
const LONGEST_NAME = '.0123456789ab'
