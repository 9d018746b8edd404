import { PolicyError } from '@sluice/core'
import { type DeclarationOf, expectedButGot, oneOf, unchecked } from '@sluice/core/internal'
import { mostRestrictive, type RequestDecision, type RequestDecisions, wholeSeconds } from './decisions.js'
import { writeDraft6, writeDraft7, writeDraft11 } from './ietf-drafts.js'
import type { KeptHeaders, Platform, SetHeader } from './platform.js'

/** A set of headers that reports limits to clients. 'ietf' is the newest draft that is supported. */
export type HeaderFormat = 'x-ratelimit' | 'ietf' | 'draft-6' | 'draft-7'

export interface HeaderOptions {
  /**
   * The headers of every response, allowed or denied; of the IETF's drafts at most one, because all of them set
   * RateLimit-Policy. false leaves only Retry-After on denials.
   * @default 'x-ratelimit'
   */
  readonly headers?: HeaderFormat | readonly HeaderFormat[] | false
  /**
   * Other names for single headers, by their usual names; false omits a header.
   * @default {}
   * @example
   * { 'X-RateLimit-Limit': 'X-Rate-Limit-Limit', 'Retry-After': false }
   */
  readonly headerNames?: HeaderNames
  /**
   * X-RateLimit-Reset in seconds since 1970 ('epoch') or from now ('delta').
   * @default 'epoch'
   */
  readonly resetAs?: 'epoch' | 'delta'
}

/** Options of the headers. The formats and names are checked where they are read. */
export const HEADERS = {
  headers: unchecked(),
  headerNames: unchecked(),
  resetAs: oneOf(['epoch', 'delta'], 'epoch'),
} satisfies DeclarationOf<HeaderOptions>

/** Writes the headers of all limiters that have counted a request, unless its response has begun. */
export type WriteHeaders<Res> = (all: RequestDecisions, res: Res) => void

/**
 * Makes the function that writes the headers that `options` ask for (X-RateLimit-*, one of the IETF's drafts, or both);
 * undefined if they ask for none. That function takes the decisions of all limiters about a request. It keeps the headers
 * with them (`all.kept`) until the head of the response is written, or sets them at once if the platform has no `atHead`. Of
 * several limiters it leaves out those with `headers: false`, and always those that do not count the caller, who is exempt.
 * @throws {PolicyError} INVALID_OPTION for an unknown format, or for two drafts.
 */
export function headerWriter<Res>(
  options: HeaderOptions,
  platform: Pick<Platform<never, Res>, 'headersSent' | 'setHeader' | 'atHead'>,
): WriteHeaders<Res> | undefined {
  const { resetAs = 'epoch' } = options
  const { hasXRateLimit, draft } = checkedFormats(options)
  const writeDraft = draft && DRAFTS[draft]
  if (!hasXRateLimit && !writeDraft) return undefined
  const set = headerSetter(options.headerNames, { setHeader: keep })
  return function writeHeaders(all, res) {
    const isOne = all.length === 1
    // An exempt key has no policy.
    const isShown = ({ decision, inHeaders }: RequestDecision): boolean =>
      decision.policy !== '' && (isOne || inHeaders)
    const shown = isOne && all[0]!.decision.policy ? all : all.filter(isShown)
    if (shown.length === 0) return
    let { kept } = all
    if (!kept) {
      kept = new Map()
      if (platform.atHead?.(res, kept)) all.kept = kept
    }
    if (hasXRateLimit) writeXRateLimit(shown, resetAs, kept, set)
    if (writeDraft) writeDraft(shown, kept, set)
    if (!all.kept) setKeptHeaders(kept, res, platform)
  }
}

/**
 * The formats of headers that the options ask for: X-RateLimit-*, and at most one of the IETF's drafts.
 * @throws {PolicyError} INVALID_OPTION for an unknown format, or for two drafts.
 */
function checkedFormats({ headers = 'x-ratelimit' }: HeaderOptions) {
  const formats: readonly HeaderFormat[] = headers === false ? [] : [headers].flat()
  const drafts = formats.filter((format) => format !== 'x-ratelimit')
  if (!drafts.every((draft) => Object.hasOwn(DRAFTS, draft))) {
    const what =
      "headers must be 'x-ratelimit' (the default), 'ietf' (the newest draft), 'draft-6', 'draft-7', a list of them or false"
    throw expectedButGot(PolicyError, 'INVALID_OPTION', what, headers)
  }
  if (new Set(drafts).size > 1) {
    const what = `${drafts.join(' and ')} exclude each other: both set RateLimit-Policy`
    throw new PolicyError('INVALID_OPTION', what)
  }
  return { hasXRateLimit: formats.includes('x-ratelimit'), draft: drafts[0] }
}

const keep: SetHeader<KeptHeaders> = (kept, name, value) => void kept.set(name, value)

/**
 * Sets the rate limit headers that were kept to be written with the head of the response, now and on the response itself, because it
 * is about to be answered here. Does nothing if the head was sent. They are kept no longer.
 */
export function setKeptHeaders<Res>(
  kept: KeptHeaders | undefined,
  res: Res,
  { setHeader, headersSent }: Pick<Platform<never, Res>, 'headersSent' | 'setHeader'>,
): void {
  if (headersSent(res)) return
  kept?.forEach((value, name) => setHeader(res, name, value))
  kept?.clear()
}

/** How each draft of the IETF is written. */
const DRAFTS: Record<
  Exclude<HeaderFormat, 'x-ratelimit'>,
  <Res>(all: readonly RequestDecision[], res: Res, set: SetHeader<Res>) => void
> = {
  ietf: writeDraft11,
  'draft-6': writeDraft6,
  'draft-7': writeDraft7,
}

/**
 * Writes X-RateLimit-Limit, -Remaining and -Reset, which no standard defines and most clients read. They have room for
 * one limiter: the most restrictive one. X-RateLimit-Reset is when its allowance is full again, in seconds since 1970 or
 * ('delta') from now.
 */
function writeXRateLimit<Res>(
  all: readonly RequestDecision[],
  resetAs: 'epoch' | 'delta',
  res: Res,
  set: SetHeader<Res>,
): void {
  const decision = all.length === 1 ? all[0]!.decision : mostRestrictive(all)
  const origin = resetAs === 'epoch' ? Date.now() : 0
  set(res, 'X-RateLimit-Limit', String(decision.limit))
  set(res, 'X-RateLimit-Remaining', String(decision.remaining))
  set(res, 'X-RateLimit-Reset', String(wholeSeconds(origin + decision.resetAfterMs)))
}

/**
 * Makes a function that sets a header as `set` does, and also remembers it on the response, in a list with the latest
 * first. Some frameworks drop headers when a handler returns a response of its own or throws; their adapter sets these again.
 */
export function remembering<Res extends object>(set: SetHeader<Res>): SetHeader<Res> {
  return function setHeader(res: Res & Remembering, name, value) {
    set(res, name, value)
    res[LATEST] = { name, value, earlier: res[LATEST] }
  }
}

/** The headers that limiters have set on a response, the latest first; undefined if there are none. */
export function rememberedHeaders(res: object): RememberedHeader | undefined {
  return (res as Remembering)[LATEST]
}

/** A list takes less time than an object by the headers' names. */
export interface RememberedHeader {
  readonly name: string
  readonly value: string
  readonly earlier: RememberedHeader | undefined
}

const LATEST = Symbol('headers')

/** A property of the response costs less than a WeakMap. */
interface Remembering {
  [LATEST]?: RememberedHeader | undefined
}

/**
 * The name of a header in lower case, as the same string object for all requests. A framework that keeps names in lower
 * case would otherwise make a new string for each response and compute its hash. The string is taken from an object's
 * keys because V8 keeps each property name only once, with its hash.
 */
export function lowerCase(name: string): string {
  return (LOWER_CASE[name] ??= Object.keys({ [name.toLowerCase()]: name })[0]!)
}

const LOWER_CASE: Record<string, string> = {}

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
 * Returns the function by which a guard sets headers: the platform's own, or if there are `names` (the option
 * `headerNames`) one that sets each header under its other name, and leaves out those whose name is false.
 * @throws {PolicyError} INVALID_OPTION for a header that cannot be renamed, or for an invalid name or one given twice.
 */
export function headerSetter<Res>(
  names: HeaderNames | undefined,
  { setHeader }: Pick<Platform<never, Res>, 'setHeader'>,
): SetHeader<Res> {
  if (names === undefined) return setHeader
  if (typeof names !== 'object' || names === null) {
    throw expectedButGot(PolicyError, 'INVALID_OPTION', 'headerNames must be an object', names)
  }
  const renamed = new Map(Object.entries(names).filter(([, newName]) => newName !== undefined))
  for (const [name, newName] of renamed) checkName(name, newName)
  const newNames = RENAMEABLE.map((name) => renamed.get(name) ?? name).filter((newName) => newName !== false)
  if (new Set(newNames.map((newName) => newName.toLowerCase())).size < newNames.length) {
    throw new PolicyError('INVALID_OPTION', 'headerNames must not give two headers one name')
  }
  return (res, name, value) => {
    const newName = renamed.get(name) ?? name
    if (newName !== false) setHeader(res, newName, value)
  }
}

/**
 * Checks one entry of the option `headerNames`: `name` must be a header that the limits set, and `newName` another valid name
 * for it, or false to leave it out.
 * @throws {PolicyError} INVALID_OPTION.
 */
function checkName(name: string, newName: unknown): void {
  if (!(RENAMEABLE as readonly string[]).includes(name)) {
    const what = `headerNames knows ${RENAMEABLE.join(', ')}`
    throw expectedButGot(PolicyError, 'INVALID_OPTION', what, name)
  }
  if (newName === false || (typeof newName === 'string' && TOKEN.test(newName))) return
  throw expectedButGot(
    PolicyError,
    'INVALID_OPTION',
    `headerNames: ${name} must be the name of a header or false`,
    newName,
  )
}

/** The name of a header (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
