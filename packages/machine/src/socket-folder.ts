import { PolicyError } from '@sluice/core'
import { digest, expectedButGot } from '@sluice/core/internal'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, linkSync, lstatSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import type { Server } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { isOwnFolder, notOwn, takeFolder } from './own-folder.js'
import { PROTOCOL } from './protocol.js'

export interface Claim {
  /**
   * Marks the claim as used, and returns whether no server came after this one, as far as it can be seen now. To be
   * called from time to time: somebody may delete the files.
   */
  renew(): boolean
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
export class SocketFolder {
  readonly #folder: string

  /**
   * The folder in `parent` for the sockets of the store with this name; `take` makes it. Names that are long or have other
   * characters than `\w`, `.` and `-` are replaced by a digest, behind `~` so that it equals no plain name.
   * @throws {PolicyError} INVALID_OPTION if the path is too long for a socket.
   */
  constructor(
    readonly parent: string,
    name: string,
  ) {
    const isPlain = /^[\w.-]{1,24}$/.test(name)
    this.#folder = join(parent, isPlain ? `${PROTOCOL}-${name}` : `${PROTOCOL}~${digest(name).slice(0, 24)}`)
    const longest = Buffer.byteLength(join(this.#folder, LONGEST_NAME))
    if (longest > LONGEST_PATH) {
      const bound = `the path of a socket must be at most ${LONGEST_PATH} bytes: folder is too long by ${longest - LONGEST_PATH}`
      throw expectedButGot(PolicyError, 'INVALID_OPTION', bound, parent)
    }
  }

  /**
   * Makes `parent`, and in it the folder of this store (`#folder`), where they are missing. If `parent` is not a folder of this
   * user, it returns the reason as the end of a sentence, so that the caller can try another parent; otherwise it returns
   * undefined. Only this user can write to a `parent` of its own, so it is an error if the store's folder in it is not this
   * user's.
   * @throws {PolicyError} INVALID_OPTION for that, or if a folder of this user is open to others, or cannot be made.
   */
  take(): string | undefined {
    const whyNotOurs = takeFolder(this.parent)
    const why = whyNotOurs === undefined ? takeFolder(this.#folder) : undefined
    if (why !== undefined) throw notOwn(this.#folder, why)
    return whyNotOurs
  }

  /**
   * The address of the newest server, which may have ended; undefined if there was none, or if the folder is not this
   * user's.
   */
  newest(): string | undefined {
    if (!isOwnFolder(this.parent) || !isOwnFolder(this.#folder)) return undefined
    const number = this.#highest()
    return number === 0 ? undefined : this.#at(number)
  }

  /**
   * Makes this process the server: it listens to a socket of a temporary name, and links that to the number after the newest of
   * `former`, the addresses of earlier servers. The file system lets one process alone make that link. Returns a claim, whose
   * `renew` tells whether this process is still the newest server; undefined if another process was faster, or if a higher
   * number is there by now: this process was so slow that others had come and gone.
   */
  async claim(listener: Server, former: readonly string[]): Promise<Claim | undefined> {
    const own = join(this.#folder, `.${randomBytes(6).toString('hex')}`)
    listener.listen({ path: own, exclusive: true }) // node:cluster shares handles otherwise
    await once(listener, 'listening')
    chmodSync(own, 0o600)
    const last = former.find((address) => dirname(address) === this.#folder)
    const number = last === undefined ? 1 : 1 + numberOf(basename(last))
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
    this.#deleteFormer(number)
    const { ino } = statSync(path)
    return { renew: () => this.#renew(path, number, ino) }
  }

  /**
   * Marks the socket as used, since services that clean up delete old temporary files. Returns whether this process is still the
   * newest server: the file at `path` is its socket (`inode`), and no number is higher. If the check fails for another reason
   * than a missing file, such as no free descriptors, that is true: to step down would lose all state.
   */
  #renew(path: string, number: number, inode: number): boolean {
    try {
      const now = new Date()
      if (lstatSync(this.parent).uid !== process.getuid!()) return false // deleted, and made by another user
      if (statSync(path).ino !== inode || this.#highest() !== number) return false
      utimesSync(path, now, now)
      return true
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'ENOENT'
    }
  }

  /** The path of the socket of the server with this number. */
  #at(number: number): string {
    return join(this.#folder, `${number}`)
  }

  /** The number of the newest server that has had a socket in this folder; 0 if there was none. */
  #highest(): number {
    return Math.max(0, ...readdirSync(this.#folder).map(numberOf))
  }

  /**
   * Cleans up the folder when this process has become the newest server, the one with this number. Sockets of lower numbers are
   * deleted, since only the newest server serves, and so are files whose name is no number. A name with a dot in front is
   * temporary: a process has its socket there until it gets a number. Such a socket is deleted if it is older than a minute, as
   * its process has probably ended before it got one.
   */
  #deleteFormer(number: number): void {
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name)
      if (name.startsWith('.') ? isOld(path) : numberOf(name) < number) rmSync(path, { force: true })
    }
  }
}

/** The server's number that a file name is, from 1 to nine digits; 0 for any other name. */
function numberOf(name: string): number {
  return /^[1-9]\d{0,8}$/.test(name) ? Number(name) : 0
}

/** Whether a temporary socket is over a minute old, so probably left by a process that ended; false for one that is gone. */
function isOld(path: string): boolean {
  const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Infinity }
  return Date.now() - mtimeMs > 60_000
}

/** The address of a socket has room for 104 bytes on macOS and 108 on Linux, with a zero at the end. */
const LONGEST_PATH = 103
const LONGEST_NAME = '.0123456789ab'
