import { PolicyError } from '@sluice/core'
import { lstatSync, mkdirSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/*
 * Processes trust whatever answers on a socket, so the sockets lie in a folder that their user alone can enter. The folder is
 * only as safe as the way to it: who can write to a folder above it can put another one in its place.
 */

/**
 * Makes a folder, and those above it, if it does not exist. Returns undefined if the folder belongs to this user and only this
 * user can enter it; otherwise the reason why it is not this user's, as the end of a sentence, so that another folder can be
 * tried. A folder of this user that others can enter is an error, which names the command that mends it.
 * @throws {PolicyError} INVALID_OPTION for an own folder that is open to others, or one that cannot be made.
 */
export function takeFolder(folder: string): string | undefined {
  const state = withPathInError(folder, lstatOrMake)
  if (state.uid !== process.getuid!()) return `belongs to the user ${state.uid}`
  if (!state.isDirectory()) return 'is no directory'
  if (isOpenToOthers(state)) throw notOwn(folder, `has mode ${octalMode(state)}: chmod 700 ${folder}`)
  return undefined
}

/** Whether a folder is there, and is this user's alone. */
export function isOwnFolder(folder: string): boolean {
  const state = lstatSync(folder, { throwIfNoEntry: false })
  return state !== undefined && state.isDirectory() && belongsToThisUser(state) && !isOpenToOthers(state)
}

/** Whether the permissions of a folder let anybody but its user do anything. */
function isOpenToOthers({ mode }: Stats): boolean {
  return (mode & 0o077) !== 0
}

/**
 * Makes the folders above `folder` where they are missing, and checks each from the root down: another user who could replace one
 * of them could replace `folder` too. At a symbolic link it begins anew with the link's target and the names that are left.
 * @throws {PolicyError} INVALID_OPTION for the first that belongs to a user other than root and this one, that others can write
 * to (unless its sticky bit is set, which keeps them from replacing what is in it), or that cannot be used (`withPathInError`).
 */
export function takeParents(folder: string): void {
  // Only for its error: links that lead in a circle throw here, and would be followed for ever below.
  withPathInError(dirname(folder), (parent) => statSync(parent, { throwIfNoEntry: false }))
  const names = resolve(folder).split('/').slice(1)
  for (let i = 0; i < names.length; i++) {
    const parent = `/${names.slice(0, i).join('/')}`
    const state = withPathInError(parent, lstatOrMake)
    if (!belongsToThisUser(state) && state.uid !== 0) throw unsafe(parent, `belongs to the user ${state.uid}`)
    if (state.isSymbolicLink())
      return takeParents(resolve(dirname(parent), readlinkSync(parent), ...names.slice(i)))
    const canOthersWrite = (state.mode & 0o022) !== 0
    if (canOthersWrite && (state.mode & STICKY) === 0)
      throw unsafe(parent, `has mode ${octalMode(state)}: chmod go-w ${parent}`)
  }
}

/** In a sticky folder, such as that for temporary files, only its owner can rename or delete a file. */
const STICKY = 0o1000

/** The error for a folder that is not this user's alone. `why` is the end of a sentence about it. */
export function notOwn(folder: string, why: string): PolicyError {
  return refusal('be a directory of this user with mode 0700', folder, why)
}

/** The error about a folder above the chosen one that another user could replace. `why` is the end of a sentence about it. */
function unsafe(parent: string, why: string): PolicyError {
  return refusal('lie in directories of root or this user that others cannot write to', parent, why)
}

/** Makes the error about a folder of a machineStore. `bound` says what it must be, `why` how the one at `path` fails that. */
function refusal(bound: string, path: string, why: string): PolicyError {
  const message = `the folder of a machineStore must ${bound}, got ${JSON.stringify(path)}, which ${why}`
  return new PolicyError('INVALID_OPTION', message)
}

/**
 * The file system's record of what is at this path, without following a link. If there is nothing, it makes a folder that this
 * user alone can enter. If another process makes the folder at the same moment, it looks again.
 */
function lstatOrMake(folder: string): Stats {
  const state = lstatSync(folder, { throwIfNoEntry: false })
  if (state) return state
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 })
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Made by another process at the same moment, perhaps of another user: its record tells.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return lstatOrMake(folder)
    throw error
  }
  return lstatSync(folder)
}

/** Whether a file or folder belongs to the user of this process. */
function belongsToThisUser({ uid }: Stats): boolean {
  return uid === process.getuid!()
}

/** The permissions of a file as chmod writes them, such as 0700. */
function octalMode({ mode }: Stats): string {
  return `0${(mode & 0o7777).toString(8)}`
}

/**
 * Returns what `act` returns for a path. If `act` throws an error of the file system by which no usable folder can be there
 * (`NO_FOLDER`), this throws a PolicyError that names the path; any other error is thrown as it is.
 */
function withPathInError<T>(path: string, act: (path: string) => T): T {
  try {
    return act(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw NO_FOLDER.has(code!) ? notOwn(path, `cannot be used: ${message}`) : error
  }
}

/** Errors by which the place is taken by something else, or belongs to others. */
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
