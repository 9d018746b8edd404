import { PolicyError } from '@sluice/core'
import {
  type DeclarationOf,
  denialCache,
  type DenialCacheOptions,
  digest,
  expectedButGot,
  MEMORY_STORE,
  oneOf,
  printableName,
  readOptions,
  unchecked,
} from '@sluice/core/internal'
import type { Clock, DenialCacheBounds } from '@sluice/core/store'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { HostOptions } from './host.js'
import { type MeetingPoint, NamedPipe, SocketFolders } from './meeting-point.js'
import { PROTOCOL } from './protocol.js'

export interface MachineStoreOptions {
  /** Processes with stores of one name share their state. 1 to 64 characters of printable ASCII. */
  readonly name: string
  /**
   * Whether this process may keep the state.
   * - 'auto': it serves where no other process does, and takes over when that one ends.
   * - true: it only serves. While another process does, calls of this one are decided by `onStoreError`.
   * - false: it only uses what another process serves. While none does, calls are decided by `onStoreError`.
   * @default 'auto'
   */
  readonly serve?: 'auto' | boolean
  /**
   * The folder of the socket: an absolute path. It is made with mode 0700, and must belong to this user. No other user but root
   * may own or write to those above it, unless they are sticky. Not used on Windows.
   * @default `sluice-<uid>` in the system's folder for temporary files, or `sluice-<uid>-1` to `-9` where others have that
   */
  readonly folder?: string
  /**
   * Most keys held at once, as in `memoryStore`. The process that serves decides with its own.
   * @default 1_000_000
   */
  readonly maxKeys?: number
  /**
   * Most lists of shapes held at once, as in `memoryStore`. The process that serves decides with its own.
   * @default 1000
   */
  readonly maxShapes?: number
  /**
   * Caches denials in each process, so that repeated calls on an exhausted key ask no other process. A cached denial answers
   * calls of the same cost under the same limits, until the instant that the store named. Corrections made by other processes
   * (reset, refund, a shorter block) are seen within `maxAge`. `false` disables the cache.
   */
  readonly denialCache?: DenialCacheOptions | false
  /** Returns microseconds; for tests. The clock of the process that serves decides. */
  readonly clock?: Clock
}

const MACHINE_STORE = {
  ...MEMORY_STORE,
  name: printableName,
  serve: oneOf(['auto', true, false], 'auto'),
  folder: unchecked<string | undefined>(),
  denialCache,
} satisfies DeclarationOf<MachineStoreOptions>

/** Options with their defaults, checked. */
interface MachineSettings {
  readonly name: string
  readonly serve: 'auto' | boolean
  readonly meetingPoint: MeetingPoint
  readonly denialCache: DenialCacheBounds | undefined
  readonly host: HostOptions
}

/**
 * The options of a machineStore, checked and with their defaults.
 * @throws {PolicyError} NAME_REQUIRED, INVALID_NAME, INVALID_OPTION, INVALID_DURATION.
 */
export function machineSettings(options: Partial<MachineStoreOptions> = {}): MachineSettings {
  const settings = readOptions(MACHINE_STORE, options, { what: 'machineStore' })
  const { name, serve, folder, denialCache, ...host } = settings
  if (name === undefined) {
    const message =
      "machineStore needs a name: processes with stores of one name share their state, so write machineStore({ name: 'api' })"
    throw new PolicyError('NAME_REQUIRED', message)
  }
  return { name, serve, denialCache, meetingPoint: meetingPointOf(name, folder), host }
}

/**
 * Where the processes of a store meet. On Windows it is a named pipe for the user and the store's name; elsewhere it is sockets
 * in the `folder` of the options. Without that option there are ten folders to choose from, in the system's folder for temporary
 * files, as another user may have made some of them first (`ownFolders`).
 */
function meetingPointOf(name: string, folder: string | undefined): MeetingPoint {
  if (folder !== undefined && !(typeof folder === 'string' && isAbsolute(folder))) {
    throw expectedButGot(PolicyError, 'INVALID_OPTION', 'folder must be an absolute path', folder)
  }
  if (process.platform !== 'win32')
    return folder === undefined ? new SocketFolders(ownFolders(), name) : SocketFolders.within(folder, name)
  return new NamedPipe(`\\\\.\\pipe\\sluice-${PROTOCOL}-${digest(`${userInfo().username}\n${name}`)}`)
}

/**
 * The folders in which processes of this user may meet, the preferred one first: `sluice-<uid>`, then `sluice-<uid>-1` to `-9`.
 * Another user may have made a folder of that name first, and would have to make all ten to keep this user's processes from
 * meeting.
 */
function ownFolders(): readonly string[] {
  const first = join(tmpdir(), `sluice-${process.getuid!()}`)
  return [first, ...Array.from({ length: 9 }, (_, i) => `${first}-${i + 1}`)]
}
