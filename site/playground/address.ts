import { packList, unpackList } from './packed-list.js'
import { formatList, parseList } from './pasted.js'
import { DEFAULT } from './presets.js'
import { type Column, EXTRAS, MOST_COLUMNS, type Scenario, SETTINGS, typed, type Values } from './scenario.js'

/*
 * A scenario as a text, which is the fragment of an address or a file:
 * `2&kind=poisson&rate=4&limits=gcra(limit:20,window:10s)+wait(maxWait:5s)`. The number is the version of the form. What is the
 * default is left out.
 */

/** Each turns the text of a version, the first that of version 1, into that of the next one. */
const UPGRADES: readonly ((text: string) => string)[] = [
  (text) => text.replaceAll(/;maxWait:([^;&]*)/g, ';wait(maxWait:$1)').replaceAll(';', '+'),
]
export const VERSION = UPGRADES.length + 1
export const MOST_CHARACTERS = 2000
/** Longer lists are kept in files. */
export const MOST_PASTED = 800

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

/** The scenario of a text, with or without `#`. A text that is not understood is the default, and says why. */
export function scenarioAt(given: string): { readonly scenario: Scenario; readonly problem?: string } {
  try {
    return { scenario: parse(given.replace(/^#/, '') || DEFAULT.fragment) }
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof URIError)) throw error
    return { scenario: parse(DEFAULT.fragment), problem: error.message }
  }
}

function parse(text: string): Scenario {
  const [, version, given = ''] = /^(\d+)&(.*)$/s.exec(text) ?? []
  if (!(Number(version) >= 1 && Number(version) <= VERSION))
    throw new TypeError(`it does not begin with a version that this page knows, 1 to ${VERSION}`)
  const upgraded = UPGRADES.slice(Number(version) - 1).reduce((old, upgrade) => upgrade(old), given)
  const settings: Record<string, string | number> = { kind: 'even' }
  const columns: Column[] = []
  const names = new Set<string>()
  for (const part of upgraded.split('&')) {
    const [name = '', value = ''] = part.split(/=(.*)/s)
    // A few characters may stand for all calls that a list can have.
    if (name !== 'limits' && names.has(name)) throw new TypeError(`'${name}' is set twice`)
    names.add(name)
    if (name === 'limits') columns.push(parseColumn(value))
    else if (name === 'list') settings['list'] = formatList(unpackList(value))
    else if (name === 'text') settings['list'] = decodeURIComponent(value)
    else if (Object.hasOwn(SETTINGS, name)) settings[name] = typed(decodeURIComponent(value))
    else throw new TypeError(`'${name}' is nothing that can be set`)
  }
  if (columns.length === 0) throw new TypeError('it names no limits')
  if (columns.length > MOST_COLUMNS)
    throw new TypeError(`it has ${columns.length} columns, more than ${MOST_COLUMNS}`)
  return { settings, columns }
}

/** A text that is no list of calls, or too long for an address, is kept as it was typed. */
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

function formatColumn({ policies, ...extras }: Column): string {
  const named = policies.map(({ algorithm = '', ...options }): [string, Values] => [`${algorithm}`, options])
  return [...named, ...Object.entries<Values>(extras)]
    .map(([name, options]) => `${encode(name)}(${pairs(options, ':').join(',')})`)
    .join('+')
}

function parseColumn(text: string): Column {
  const groups = text.split('+').map(parseGroup)
  const isExtra = ([name]: readonly [string, Values]): boolean => Object.hasOwn(EXTRAS, name)
  const extras = groups.filter(isExtra)
  const named = groups.filter((group) => !isExtra(group))
  const policies = named.map(([algorithm, options]) => ({ algorithm, ...options }))
  return { policies, ...Object.fromEntries(extras) }
}

/** The name and the options of `name(option:value,option:value)`. */
function parseGroup(text: string): [string, Values] {
  const [, name = '', inner = ''] = /^([\w%]+)\(([^()]*)\)$/.exec(text) ?? []
  if (name === '') throw new TypeError(`'${text.slice(0, 60)}' is no policy`)
  const options = inner
    .split(',')
    .filter(Boolean)
    .map((one) => {
      const [option = '', value = ''] = one.split(/:(.*)/s)
      if (value === '') throw new TypeError(`'${one.slice(0, 60)}' is no option`)
      return [option, typed(decodeURIComponent(value))]
    })
  return [decodeURIComponent(name), Object.fromEntries(options)]
}

function pairs(values: Values, separator: string): string[] {
  return Object.entries(values).map(([name, value]) => name + separator + encode(value))
}

/** The brackets too, which separate here and which `encodeURIComponent` leaves as they are. */
function encode(value: string | number): string {
  return encodeURIComponent(value).replace(/[()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
}
