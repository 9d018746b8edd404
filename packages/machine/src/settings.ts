import { PolicyError } from '@sluice/core'
import { denialCacheBounds, digest, expected, printableName } from '@sluice/core/internal'
import type { DenialCacheBounds } from '@sluice/core/store'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { Host, type HostOptions } from './host.js'
import { NamedPipe } from './named-pipe.js'
import type { MeetingPoint } from './meeting-point.js'
import type { MachineStoreOptions } from './options.js'
import { PROTOCOL } from './protocol.js'
import { SocketFolder } from './socket-folder.js'

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
