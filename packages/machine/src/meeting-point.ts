import type { PolicyError } from '@sluice/core'
import { sharedInProcess, warnProcess } from '@sluice/core/internal'
import { once } from 'node:events'
import type { Server } from 'node:net'
import { isListening } from './greeting.js'
import { notOwn, takeParents } from './own-folder.js'
import { type Claim, SocketFolder } from './socket-folder.js'

/** Where the processes of one store meet. */
export interface MeetingPoint {
  /**
   * The addresses of the newest servers, one for each place where there was one. All but one of them have ended, or all.
   * @throws an error of the file system, or PolicyError if others could change what lies there.
   */
  newest(): readonly string[]
  /** Listens, and becomes the newest after those of `former`. Undefined if another process was faster. */
  claim(listener: Server, former: readonly string[]): Promise<Claim | undefined>
}

/**
 * The folders of one store, of which all but the first are for the case that others have taken those before. A process
 * serves in the first that it can have, which need not be the same for two that start while others make folders and delete
 * them. So a process that has claimed its place looks whether one listens in another place, and withdraws if so. Of two
 * processes the later one to claim sees the other. If both withdraw, the first folder of both is the same from then on.
 */
export class SocketFolders implements MeetingPoint {
  readonly #folders: readonly SocketFolder[]
  readonly #prepare: () => void

  /**
   * `parents` are the folders to choose from, the preferred one first. `prepare` is called before each use, for example to check
   * the folders above, and may throw. A folder to serve in is looked for at once, so that a bad one is an error here.
   * @throws {PolicyError} INVALID_OPTION if a path is too long for a socket, or no folder is this user's.
   */
  constructor(parents: readonly string[], name: string, prepare = (): void => {}) {
    this.#folders = parents.map((parent) => new SocketFolder(parent, name))
    this.#prepare = prepare
    this.#servingFolder()
  }

  /** The meeting point in a folder that the user chose. Other than those of the system, the folders above it are checked too. */
  static within(parent: string, name: string): SocketFolders {
    return new SocketFolders([parent], name, () => takeParents(parent))
  }

  /**
   * The addresses at which a server may be found: that of the newest server in each folder that has had one. All folders are
   * looked at because the processes of this user need not all serve in the same one: another user may have held the preferred
   * folder when one of them started. A folder to serve in is looked for first, and made if it is missing, so that its absence is
   * an error here.
   * @throws {PolicyError} INVALID_OPTION if this user has no folder to serve in.
   */
  newest(): readonly string[] {
    this.#servingFolder()
    return this.#folders.flatMap((folder) => folder.newest() ?? [])
  }

  /**
   * Makes this process the server, if no other has become it since the addresses `former` of earlier servers were read; returns
   * undefined if one has. Two processes that start at the same time may each find another folder to serve in, and so both claim
   * a place. Therefore a process that has claimed its place looks whether a server listens in one of the other folders. If so, it
   * returns undefined too, and its caller closes `listener`.
   */
  async claim(listener: Server, former: readonly string[]): Promise<Claim | undefined> {
    const home = this.#servingFolder()
    const claim = await home.claim(listener, former)
    if (!claim) return undefined
    for (const folder of this.#folders) {
      const address = folder === home ? undefined : folder.newest()
      if (address !== undefined && (await isListening(address))) return undefined
    }
    return claim
  }

  /**
   * The first folder in the list that belongs to this user, made if it is missing, in which to serve. Warns if a folder before it
   * belongs to another user of the machine.
   * @throws {PolicyError} INVALID_OPTION if there is none.
   */
  #servingFolder(): SocketFolder {
    this.#prepare()
    let refusal: PolicyError | undefined
    for (const folder of this.#folders) {
      const whyNotOurs = folder.take()
      if (whyNotOurs === undefined) {
        if (refusal) warnOnce(`${refusal.message}: the processes of this user meet in ${folder.parent}`)
        return folder
      }
      refusal ??= notOwn(folder.parent, whyNotOurs)
    }
    throw refusal!
  }
}

/**
 * Warns of a folder that is taken, once for each text in the process, also where several copies of this package are
 * loaded.
 */
function warnOnce(text: string): void {
  const warned = sharedInProcess('folders', () => new Set<string>())
  if (!warned.has(text)) warnProcess('FOLDER_TAKEN', text)
  warned.add(text)
}

/** A named pipe of Windows. It ends with its process, and the system lets one process alone make it. */
export class NamedPipe implements MeetingPoint {
  constructor(private readonly path: string) {}

  /** The path of the pipe, which is the only address that a server can have. */
  newest(): readonly string[] {
    return [this.path]
  }

  /**
   * Makes this process the server by listening to the pipe. Undefined if another process listens already. The claim holds
   * as long as the process does, so `renew` has nothing to check.
   */
  async claim(listener: Server): Promise<Claim | undefined> {
    listener.listen({ path: this.path, exclusive: true })
    try {
      await once(listener, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
      throw error
    }
    return { renew: () => true }
  }
}
