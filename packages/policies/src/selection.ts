import { InputError } from '@sluice/core'
import { expectedButGot, nearestTo } from '@sluice/core/internal'

/*
 * The strings `by` and `where`, in a policy file and on the command line: whose calls are counted, and which of them.
 */

/** Returns a part of a call by its name, such as `path` or `header:user-agent`; undefined if the call has none. */
export type ReadPart = (name: string) => string | undefined

/** The calls that a limiter is for. */
export interface Where {
  readonly text: string
  /** The parts of a call that the conditions are about, such as `path` or `header:user-agent`. */
  readonly parts: readonly string[]
  matches(read: ReadPart): boolean
}

/** Parts of a call that have a name by themselves. */
const PARTS = ['ip', 'method', 'path', 'status', 'host']

/**
 * Reads `by`, the name of the part of a call by whose value calls are counted: 'ip', 'header:NAME' or 'field:PATH'. Names of
 * headers are returned in lower case.
 * @throws {InputError} INVALID_KEY.
 */
export function parseBy(text: unknown): string {
  if (typeof text === 'string' && (text === 'ip' || isNamed(text))) return normalized(text)
  const near = typeof text === 'string' ? nearestPart(text, ['ip']) : undefined
  const advice = near === undefined ? '' : ` (did you mean '${near}'?)`
  throw expectedButGot(
    InputError,
    'INVALID_KEY',
    `by must be 'ip', 'header:NAME' or 'field:PATH'${advice}`,
    text,
  )
}

/**
 * Reads `where`: conditions with commas between, such as `path^=/api,method=POST`. A call must fulfil all of them. `=` and `!=`
 * compare the whole value, `^=` its beginning, `$=` its end, and `*=` looks anywhere in it. Space around names and values is
 * left out. A `host` is compared in lower case, without its port and a final dot.
 * @throws {InputError} INVALID_KEY.
 */
export function parseWhere(text: unknown): Where {
  if (typeof text !== 'string' || text === '')
    throw expectedButGot(
      InputError,
      'INVALID_KEY',
      "where must be a text such as 'path^=/api,method=POST'",
      text,
    )
  const parsed = text.split(',').map(parseCondition)
  const errors = parsed.filter((result) => typeof result === 'string')
  if (errors.length > 0) throw new InputError('INVALID_KEY', errors.join('; '))
  const conditions = parsed.filter((result) => typeof result !== 'string')
  return {
    text,
    parts: conditions.map(({ part }) => part),
    matches: (read) => conditions.every(({ holds }) => holds(read)),
  }
}

/**
 * Reads one condition, such as `path^=/api`. Returns the part of a call that it is about, and the function `holds`, which tells
 * whether a call fulfils it; a part that is missing counts as ''. A host is compared in lower case, without its port and a final dot.
 * For a text that is no condition it returns the error message.
 */
function parseCondition(text: string): string | { part: string; holds: (read: ReadPart) => boolean } {
  const [, name = '', operator = '', operand = ''] = /^\s*([^=!^$*\s]+)\s*([!^$*]?=)(.*)$/s.exec(text) ?? []
  if (!PARTS.includes(name) && !isNamed(name)) {
    const near = nearestPart(name, PARTS) ?? `one of ${PARTS.join(', ')}, header:NAME or field:PATH`
    return `a condition of where must be NAME=VALUE, got '${text}': is NAME ${near}?`
  }
  const part = normalized(name)
  const compare = OPERATORS[operator]!
  const value = operand.trim()
  if (part !== 'host') return { part, holds: (read) => compare(read(part) ?? '', value) }
  const host = value.toLowerCase()
  if (withoutPort(host) !== host)
    return `a host is compared without its port: write 'host${operator}${withoutPort(value)}', got '${text}'`
  // The beginning of a host, or a piece of it, may end in a dot.
  const comparedHost = operator === '^=' || operator === '*=' ? host : bareHost(host)
  return { part, holds: (read) => compare(bareHost(read(part) ?? ''), comparedHost) }
}

/** The name of a host as callers may write it, in one form: in lower case, without its port and the dot of a full name. */
const bareHost = (text: string): string => withoutPort(text.toLowerCase()).replace(/\.$/, '')

/** A host without its port; an address of IPv6 stands in brackets. */
const withoutPort = (text: string): string => text.replace(/^([^:[]*|\[.*\]):\d*$/, '$1')

const OPERATORS: Readonly<Record<string, (found: string, value: string) => boolean>> = {
  '=': (found, value) => found === value,
  '!=': (found, value) => found !== value,
  '^=': (found, value) => found.startsWith(value),
  '$=': (found, value) => found.endsWith(value),
  '*=': (found, value) => found.includes(value),
}

/** The pattern of the names of a header, a token of RFC 9110, and of a field of a call, such as `header:user-agent`. */
export const NAMED = "(header:[!#$%&'*+.^_`|~\\w-]+|field:.+)"
const IS_NAMED = new RegExp(`^${NAMED}$`)

const isNamed = (text: string): boolean => IS_NAMED.test(text)

/** The part of a call that was probably meant by `name`: one of `parts`, a header or a field; undefined if none is near. */
function nearestPart(name: string, parts: readonly string[]): string | undefined {
  const [kind = '', ...rest] = name.split(':')
  const nearestKind = nearestTo(kind, [...parts, 'header', 'field'])
  const isWhole = nearestKind === undefined || parts.includes(nearestKind)
  const nearest = isWhole ? nearestKind : `${nearestKind}:${rest.join(':').trim() || 'NAME'}`
  return nearest === name ? undefined : nearest
}

/** The name under which a part of a call is looked up: the name of a header in lower case. */
const normalized = (name: string): string => (name.startsWith('header:') ? name.toLowerCase() : name)
