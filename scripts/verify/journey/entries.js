// Counts the functions of our sources that a call enters, and its ways between rooms. A room is a source file as it stood at
// 2bc38c11 (rooms.json), so that moving functions into one file changes no count: a class that is not there is a room of its
// own, a function that is not there is in the room of its caller.
import { readFileSync } from 'node:fs'
import { register } from 'node:module'
import { position } from './instrument.js'

/** @typedef {import('./instrument.js').SourceFunction & { file: string }} SourceFunction */
/** @typedef {{ readonly of: SourceFunction, readonly room: string, readonly from: string }} Entry */

/** The room of callers that are not ours. */
const OUTSIDE = 'outside'
/** Deeper than any call of ours goes. */
const DEEPEST_STACK = 100
/** Files by package and declaration. @type {Map<string, readonly string[]>} */
const rooms = roomsAtFirst()
/** By the module's address. @type {Map<string, readonly SourceFunction[]>} */
const functions = new Map()
/** @type {Entry[] | undefined} */
let entries

register('./hooks.js', import.meta.url)
Object.assign(globalThis, { journeyEntered: enter, journeyFunctions: know })

/** Begins to note what is entered; the function that it gives ends that. */
export function noteEntries() {
  /** @type {Entry[]} */
  const noted = []
  entries = noted
  return () => {
    entries = undefined
    return noted
  }
}

/**
 * How many functions were entered, how often from another room or from outside, and how often that led to a room that had been
 * left before.
 * @param {readonly Entry[]} noted
 */
export function countsOf(noted) {
  const crossings = noted.filter(({ from, room }) => from !== room)
  const entered = new Set(crossings.map(({ room }) => room))
  return { entries: noted.length, crossings: crossings.length, returns: crossings.length - entered.size }
}

/** @param {string} url @param {readonly SourceFunction[]} table */
function know(url, table) {
  const file = /packages\/(.+)/.exec(url)?.[1] ?? url
  functions.set(
    url,
    table.map((one) => ({ ...one, file })),
  )
}

/** @param {string} url @param {number} i */
function enter(url, i) {
  const of = functions.get(url)?.[i]
  if (!entries || !of) return
  const [caller, ...above] = callers()
  const from = caller ? roomOf(caller, above) : OUTSIDE
  entries.push({ of, room: roomOf(of, caller ? [caller, ...above] : []), from })
}

/** The functions of ours that the entered one runs in, the innermost first, up to the first that only waits for it. */
function callers() {
  const { stackTraceLimit } = Error
  Object.assign(Error, { prepareStackTrace: asSites, stackTraceLimit: DEEPEST_STACK })
  const sites = /** @type {NodeJS.CallSite[]} */ (/** @type {unknown} */ (new Error().stack)).slice(3)
  Object.assign(Error, { prepareStackTrace: undefined, stackTraceLimit })
  const waiting = sites.findIndex((site) => /** @type {{ isAsync?: () => boolean }} */ (site).isAsync?.())
  const running = waiting < 0 ? sites : sites.slice(0, waiting)
  return running.map(functionAt).filter((one) => one !== undefined)
}

/** @param {Error} _error @param {NodeJS.CallSite[]} sites */
function asSites(_error, sites) {
  return sites
}

/** @param {NodeJS.CallSite} site */
function functionAt(site) {
  const at = position(site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0)
  return functions.get(site.getFileName() ?? '')?.findLast(({ start, end }) => start <= at && at < end)
}

/** @param {SourceFunction} of @param {readonly SourceFunction[]} callers The innermost first. @returns {string} */
function roomOf({ file, declaration, isClass }, callers) {
  const known = rooms.get(keyOf(file, declaration)) ?? []
  if (known.includes(file)) return file
  if (known[0] !== undefined && known.length === 1) return known[0]
  if (isClass) return declaration
  const [caller, ...above] = callers
  return caller ? roomOf(caller, above) : file
}

function roomsAtFirst() {
  /** @type {Record<string, string>} */
  const files = JSON.parse(readFileSync(new URL('rooms.json', import.meta.url), 'utf8'))
  /** @type {Map<string, string[]>} */
  const found = new Map()
  for (const [file, names] of Object.entries(files))
    for (const name of names.split(' ')) {
      const key = keyOf(file, name)
      found.set(key, [...(found.get(key) ?? []), file])
    }
  return found
}

/** @param {string} file @param {string} declaration */
function keyOf(file, declaration) {
  return `${file.split('/', 1)[0]} ${declaration}`
}
