import { packList, unpackList } from './packed-list.js'
import { formatList, parseList } from './pasted.js'
import {
  type Column,
  DEFAULT,
  MOST_COLUMNS,
  type Scenario,
  TRAFFIC,
  type Typed,
  typed,
  VIEW,
} from './scenario.js'

/*
 * A scenario as the fragment of an address: `1&kind=poisson&rate=4&limits=gcra(limit:20,window:10s)`. The number is the version
 * of the form. What is the default is left out.
 */

export const VERSION = 1
export const MOST_CHARACTERS = 2000
/** Longer lists are kept in files. */
export const MOST_PASTED = 800

/** Turns the fragment of a version into that of the next one. There is an entry for each version that was ever written. */
const UPGRADES: Readonly<Record<number, (fragment: string) => string>> = {}

/** The fragment, or why the scenario has none. */
export function addressOf(scenario: Scenario): { readonly fragment: string } | { readonly why: string } {
  const { traffic, list, columns, view } = scenario
  const parts = [String(VERSION), ...namedValues(traffic), ...namedValues(view)]
  if (traffic.kind === 'list') {
    const calls = listOf(list)
    if (calls === undefined) parts.push(`text=${encode(list)}`)
    else if (calls.length > MOST_PASTED) {
      return { why: `${calls.length} pasted calls are more than the ${MOST_PASTED} that an address holds` }
    } else parts.push(`list=${packList(calls)}`)
  }
  for (const column of columns) parts.push(`limits=${formatColumn(column)}`)
  const fragment = parts.join('&')
  if (fragment.length <= MOST_CHARACTERS) return { fragment }
  return { why: `the address would have ${fragment.length} characters, more than ${MOST_CHARACTERS}` }
}

/** The scenario of a fragment, with or without `#`. A fragment that is not understood is the default, and says why. */
export function scenarioAt(
  fragment: string,
  upgrades = UPGRADES,
  newest = VERSION,
): { readonly scenario: Scenario; readonly problem?: string } {
  const text = fragment.replace(/^#/, '')
  if (text === '') return { scenario: DEFAULT }
  try {
    return { scenario: parse(upgraded(text, upgrades, newest)) }
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof URIError)) throw error
    return { scenario: DEFAULT, problem: error.message }
  }
}

function upgraded(text: string, upgrades: typeof UPGRADES, newest: number): string {
  const version = Number(/^(\d+)(?=&|$)/.exec(text)?.[1] ?? NaN)
  if (Number.isNaN(version)) throw new TypeError('the address does not begin with the number of a version')
  if (version > newest)
    throw new TypeError(`version ${version} of addresses is newer than this page, which knows ${newest}`)
  if (version === newest) return text
  const upgrade = upgrades[version]
  if (!upgrade) throw new TypeError(`there is no version ${version} of addresses`)
  return upgraded(upgrade(text), upgrades, newest)
}

function parse(text: string): Scenario {
  const traffic: Record<string, Typed> = {}
  const view: Record<string, Typed> = {}
  const columns: Column[] = []
  let list = ''
  for (const part of text.split('&').slice(1)) {
    const [name, value = ''] = split(part, '=')
    if (name === 'limits') columns.push(parseColumn(value))
    else if (name === 'list') list = formatList(unpackList(value))
    else if (name === 'text') list = decodeURIComponent(value)
    else if (Object.hasOwn(TRAFFIC, name)) traffic[name] = typed(decodeURIComponent(value))
    else if (Object.hasOwn(VIEW, name)) view[name] = typed(decodeURIComponent(value))
    else throw new TypeError(`'${name}' is nothing that can be set`)
  }
  if (columns.length === 0) throw new TypeError('the address names no limits')
  if (columns.length > MOST_COLUMNS)
    throw new TypeError(`the address has ${columns.length} columns, more than ${MOST_COLUMNS}`)
  return { traffic: { kind: 'even', ...traffic }, list, columns, view }
}

function formatColumn({ policies, maxWait, penalty, leases }: Column): string {
  const group = (name: string, values: object): string => `${name}(${pairs(values)})`
  const list = policies.map(({ algorithm, ...options }) => group(encode(String(algorithm)), options))
  const more = [
    ...(maxWait === undefined ? [] : [`maxWait:${encode(String(maxWait))}`]),
    ...(penalty ? [group('penalty', penalty)] : []),
    ...(leases ? [group('leases', leases)] : []),
  ]
  return [list.join('+'), ...more].join(';')
}

function parseColumn(text: string): Column {
  const [list = '', ...more] = text.split(';')
  const policies = list.split('+').map((one) => {
    const { name, options } = parseGroup(one)
    return { algorithm: name, ...options }
  })
  const column: { -readonly [Name in keyof Column]: Column[Name] } = { policies }
  for (const one of more) {
    const [name, value] = split(one, ':')
    if (name === 'maxWait') column.maxWait = typed(decodeURIComponent(value ?? ''))
    else {
      const { name, options } = parseGroup(one)
      if (name !== 'penalty' && name !== 'leases')
        throw new TypeError(`'${name}' is nothing that limits have`)
      column[name] = options
    }
  }
  return column
}

function parseGroup(text: string): { name: string; options: Record<string, Typed> } {
  const [, name, inner] = /^([\w%]+)\(([^()]*)\)$/.exec(text) ?? []
  if (name === undefined || inner === undefined) throw new TypeError(`'${text.slice(0, 60)}' is no policy`)
  const options: Record<string, Typed> = {}
  for (const part of inner === '' ? [] : inner.split(',')) {
    const [key, value] = split(part, ':')
    if (!/^\w+$/.test(key) || value === undefined) throw new TypeError(`'${part.slice(0, 60)}' is no option`)
    options[key] = typed(decodeURIComponent(value))
  }
  return { name: decodeURIComponent(name), options }
}

function namedValues(values: object): readonly string[] {
  return Object.entries(values).map(([name, value]) => `${name}=${encode(String(value))}`)
}

function pairs(values: object): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}:${encode(String(value))}`)
    .join(',')
}

/** The brackets too, which separate here and which `encodeURIComponent` leaves as they are. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}

function split(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function listOf(text: string) {
  try {
    return parseList(text)
  } catch {
    return undefined
  }
}
