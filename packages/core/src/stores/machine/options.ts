import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { printableName } from '../../algorithms/contract/policy.js'
import type { Clock } from '../../values/clock.js'
import { expected, PolicyError } from '../../values/errors.js'
import { digest } from '../../values/key.js'
import { type DenialCacheOptions, denialCacheBounds } from '../denial-cache-options.js'
import type { DenialCacheBounds } from '../store.js'
import { Host, type HostOptions } from './host.js'
import { NamedPipe } from './named-pipe.js'
import type { MeetingPoint } from './meeting-point.js'
import { PROTOCOL } from './protocol.js'
import { SocketFolder } from './socket-folder.js'

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
   * The folder of the socket: an absolute path. It is made with mode 0700, and must belong to this user. Not used on Windows.
   * @default `sluice-<uid>` in the system's folder for temporary files
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

/** Options with their defaults, checked. */
interface MachineSettings {
  readonly name: string
  readonly serve: 'auto' | boolean
  readonly meetingPoint: MeetingPoint
  readonly denialCache: DenialCacheBounds | undefined
  readonly host: HostOptions
}

/** @throws {PolicyError} NAME_REQUIRED, INVALID_NAME, INVALID_OPTION, INVALID_DURATION. */
export function checkOptions(options: MachineStoreOptions): MachineSettings {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'the options of machineStore must be an object', options)
  }
  const { name, serve = 'auto', folder, maxKeys, maxShapes, denialCache, clock, ...unknown } = options
  const [misnamed] = Object.keys(unknown)
  if (misnamed !== undefined)
    throw new PolicyError('INVALID_OPTION', `machineStore has no option '${misnamed}'`)
  if (name === undefined) {
    const message = 'machineStore needs a name: processes with stores of one name share their state'
    throw new PolicyError('NAME_REQUIRED', message)
  }
  const checkedName = printableName(name, 'the name of a machineStore')
  if (serve !== 'auto' && typeof serve !== 'boolean') {
    throw expected(PolicyError, 'INVALID_OPTION', `serve must be 'auto', true or false`, serve)
  }
  const host = { maxKeys, maxShapes, clock }
  new Host(host).close() // checks them, also where another process serves
  return {
    name: checkedName,
    serve,
    denialCache: denialCacheBounds(denialCache),
    meetingPoint: meetingPointOf(checkedName, folder),
    host,
  }
}

function meetingPointOf(name: string, folder: string | undefined): MeetingPoint {
  if (folder !== undefined && !(typeof folder === 'string' && isAbsolute(folder))) {
    throw expected(PolicyError, 'INVALID_OPTION', 'folder must be an absolute path', folder)
  }
  if (process.platform !== 'win32')
    return new SocketFolder(folder ?? join(tmpdir(), `sluice-${process.getuid!()}`), name)
  return new NamedPipe(`\\\\.\\pipe\\sluice-${PROTOCOL}-${digest(`${userInfo().username}\n${name}`)}`)
}
