import { packList, unpackList } from './packed-list.js'
import { formatList, parseList } from './pasted.js'
import { DEFAULT } from './presets.js'
import {
  type Column,
  MOST_COLUMNS,
  type Scenario,
  SETTINGS,
  type Typed,
  typed,
  type Values,
} from './scenario.js'

/*
 * A scenario as a text, which is the fragment of an address or a file:
 * `1&kind=poisson&rate=4&limits=gcra(limit:20,window:10s);maxWait:5s`. The number is the version of the form. What is the default
 * is left out.
 */

export const VERSION = 1
export const MOST_CHARACTERS = 2000
/** Longer lists are kept in files. */
export const MOST_PASTED = 800

/** Turns the text of a version into that of the next one. There is an entry for each version that was ever written. */
const UPGRADES: Readonly<Record<number, (text: string) => string>> = {}

export function formatScenario({ settings: { list, ...settings }, columns }: Scenario): string {
  const parts = pairs(settings, '=')
  if (list !== undefined) parts.push(formatCalls(String(list)))
  return [VERSION, ...parts, ...columns.map((column) => `limits=${formatColumn(column)}`)].join('&')
}

/** Why the text of a scenario is no address. */
export function tooLong({ settings: { kind, list } }: Scenario, text: string): string | undefined {
  const calls = kind === 'list' ? (callsOf(String(list))?.length ?? 0) : 0
  if (calls > MOST_PASTED)
    return `${calls} pasted calls are more than the ${MOST_PASTED} that an address holds`
  if (text.length <= MOST_CHARACTERS) return undefined
  return `the address would have ${text.length} characters, more than ${MOST_CHARACTERS}`
}

/**
 * The scenario of a text, with or without `#`. A text that is not understood is the default, and
 * says why.
 */
export function scenarioAt(
  given: string,
  upgrades = UPGRADES,
  newest = VERSION,
): { readonly scenario: Scenario; readonly problem?: string } {
  try {
    return { scenario: parse(upgraded(given.replace(/^#/, '') || DEFAULT.fragment, upgrades, newest)) }
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof URIError)) throw error
    return { scenario: parse(DEFAULT.fragment), problem: error.message }
  }
}

function upgraded(text: string, upgrades: typeof UPGRADES, newest: number): string {
  const version = Number(/^(\d+)(?=&|$)/.exec(text)?.[1] ?? NaN)
  if (Number.isNaN(version)) throw new TypeError('it does not begin with the number of a version')
  if (version > newest)
    throw new TypeError(`version ${version} is newer than this page, which knows ${newest}`)
  if (version === newest) return text
  const upgrade = upgrades[version]
  if (!upgrade) throw new TypeError(`there is no version ${version}`)
  return upgraded(upgrade(text), upgrades, newest)
}

function parse(text: string): Scenario {
  const settings: Record<string, Typed> = { kind: 'even' }
  const columns: Column[] = []
  for (const part of text.split('&').slice(1)) {
    const [name, value] = halves(part, '=')
    if (name === 'limits') columns.push(parseColumn(value))
    else if (name === 'list') settings['list'] = formatList(unpackList(value))
    else if (name === 'text') settings['list'] = decodeURIComponent(value)
    else if (Object.hasOwn(SETTINGS, name)) settings[name] = decode(value)
    else throw new TypeError(`'${name}' is nothing that can be set`)
  }
  if (columns.length === 0) throw new TypeError('it names no limits')
  if (columns.length > MOST_COLUMNS)
    throw new TypeError(`it has ${columns.length} columns, more than ${MOST_COLUMNS}`)
  return { settings, columns }
}

/** What is no list of calls, or too long for an address, is kept as it was typed. */
function formatCalls(list: string): string {
  const calls = callsOf(list)
  return calls && calls.length <= MOST_PASTED ? `list=${packList(calls)}` : `text=${encode(list)}`
}

function callsOf(list: string) {
  try {
    return parseList(list)
  } catch {
    return undefined
  }
}

function formatColumn({ policies, ...others }: Column): string {
  const group = (name: string, values: Values): string => `${name}(${pairs(values, ':').join(',')})`
  const list = policies.map(({ algorithm = '', ...options }) => group(encode(algorithm), options))
  const more = Object.entries(others).map(([name, value]: [string, Typed | Values]) =>
    typeof value === 'object' ? group(name, value) : `${name}:${encode(value)}`,
  )
  return [list.join('+'), ...more].join(';')
}

function parseColumn(text: string): Column {
  const [list = '', ...more] = text.split(';')
  const policies = list.split('+').map((one) => {
    const [algorithm, options] = parseGroup(one)
    return { algorithm, ...options }
  })
  const others = more.map((one) => {
    const [name, value] = halves(one, ':')
    if (name === 'maxWait') return [name, decode(value)]
    const group = parseGroup(one)
    if (!['penalty', 'leases'].includes(group[0]))
      throw new TypeError(`'${group[0]}' is nothing that limits have`)
    return group
  })
  return { policies, ...Object.fromEntries(others) }
}

function pairs(values: Values, separator: string): string[] {
  return Object.entries(values).map(([name, value]) => name + separator + encode(value))
}

/** The name and the options of `name(option:value,option:value)`. */
function parseGroup(text: string): [string, Values] {
  const [, name, inner] = /^([\w%]+)\(([^()]*)\)$/.exec(text) ?? []
  if (name === undefined || inner === undefined) throw new TypeError(`'${text.slice(0, 60)}' is no policy`)
  const options = inner.split(',').map((one) => {
    const [option, value] = halves(one, ':')
    if (value === '') throw new TypeError(`'${one.slice(0, 60)}' is no option`)
    return [option, decode(value)]
  })
  return [decodeURIComponent(name), Object.fromEntries(options)]
}

/** What stands before the first separator, and what after it. */
function halves(text: string, separator: string): [string, string] {
  const [first = '', ...rest] = text.split(separator)
  return [first, rest.join(separator)]
}

function decode(text: string): Typed {
  return typed(decodeURIComponent(text))
}

/** The brackets too, which separate here and which `encodeURIComponent` leaves as they are. */
function encode(value: Typed): string {
  return encodeURIComponent(value).replace(/[()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}
