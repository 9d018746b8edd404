import { expected, PolicyError } from '../values/errors.js'
import type { SetHeader } from './platform.js'

/** The headers that can be renamed or omitted. */
const RENAMEABLE = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
] as const

/** Other names for headers, by their usual names; false omits one. */
export type HeaderNames = Readonly<Partial<Record<(typeof RENAMEABLE)[number], string | false>>>

/**
 * Wraps a function that sets headers, so that it sets them under the given names. undefined if no names are given.
 * @throws {PolicyError} INVALID_OPTION for a header that cannot be renamed, or for an invalid name or one given twice.
 */
export function headerRenamer(names: HeaderNames | undefined): ((set: SetHeader) => SetHeader) | undefined {
  if (names === undefined) return undefined
  if (typeof names !== 'object' || names === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'headerNames must be an object', names)
  }
  const renamed = new Map(Object.entries(names).filter(([, to]) => to !== undefined))
  for (const [name, to] of renamed) checkName(name, to)
  const set = RENAMEABLE.map((name) => renamed.get(name) ?? name).filter((to) => to !== false)
  if (new Set(set.map((to) => to.toLowerCase())).size < set.length) {
    throw new PolicyError('INVALID_OPTION', 'headerNames must not give two headers one name')
  }
  return (set) => (name, value) => {
    const to = renamed.get(name) ?? name
    if (to !== false) set(to, value)
  }
}

function checkName(name: string, to: unknown): void {
  if (!(RENAMEABLE as readonly string[]).includes(name)) {
    const what = `headerNames knows ${RENAMEABLE.join(', ')}`
    throw expected(PolicyError, 'INVALID_OPTION', what, name)
  }
  if (to === false || (typeof to === 'string' && TOKEN.test(to))) return
  throw expected(
    PolicyError,
    'INVALID_OPTION',
    `headerNames: ${name} must be the name of a header or false`,
    to,
  )
}

/** The name of a header (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
