/** The options of a request from which axios builds its URL. */
export interface AxiosUrlOptions {
  readonly url?: string
  readonly baseURL?: string
  readonly allowAbsoluteUrls?: boolean
  readonly params?: unknown
  readonly paramsSerializer?: unknown
}

interface Serializer {
  readonly encode?: (text: string, encodedStrictly: (text: string) => string) => string
  readonly serialize?: (params: unknown, options: unknown) => string
  readonly indexes?: boolean | null
  readonly dots?: boolean
}

/**
 * The URL to which axios sends a request, with its base and parameters, as `axios.getUri` builds it. An adapter has no `getUri`,
 * and axios is not imported only for that. As in axios, a fragment (`#...`) is cut off where parameters are added.
 */
export function urlOf(options: AxiosUrlOptions): URL {
  const url = joinedUrl(options)
  const query = queryOf(options)
  if (query === '') return new URL(url)
  const [withoutFragment = ''] = url.split('#', 1)
  return new URL(`${withoutFragment}${withoutFragment.includes('?') ? '&' : '?'}${query}`)
}

/**
 * Joins the `baseURL` and the `url` of a request as axios does, before `params` are added; `url` may have a query already. An
 * absolute `url` stands alone, unless `allowAbsoluteUrls` is false. The slashes between the two become one.
 */
function joinedUrl({ url = '', baseURL, allowAbsoluteUrls }: AxiosUrlOptions): string {
  const isAbsolute = /^(?:[a-z][a-z\d+\-.]*:)?\/\//i.test(url)
  if (!baseURL || (isAbsolute && allowAbsoluteUrls !== false)) return url
  if (url === '') return baseURL
  let end = baseURL.length
  while (end > 0 && baseURL[end - 1] === '/') end--
  return `${baseURL.slice(0, end)}/${url.replace(/^\/+/, '')}`
}

/**
 * The query that axios would write for `params`, without the question mark; empty without any. `paramsSerializer` may write the
 * whole query (a function, or an object with `serialize`), or encode each name and value (an object with `encode`).
 */
function queryOf({ params, paramsSerializer }: AxiosUrlOptions): string {
  if (!params) return ''
  const serializer = (
    typeof paramsSerializer === 'function' ? { serialize: paramsSerializer } : (paramsSerializer ?? {})
  ) as Serializer
  if (serializer.serialize) return serializer.serialize(params, serializer)
  if (params instanceof URLSearchParams) return params.toString()
  const { encode } = serializer
  const encoded = encode ? (text: string) => encode(text, encodedStrictly) : encodedLoosely
  return pairsOf(params, serializer)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .join('&')
}

type Pair = readonly [name: string, value: string]

/**
 * Returns the names and values of the query that axios makes of a call's `params`, before they are encoded, by the same rules: members
 * that are undefined or null are left out, an object under a name that ends with `{}` becomes JSON, and lists and other objects become
 * several pairs, as the `serializer` says.
 */
function pairsOf(params: unknown, serializer: Serializer): readonly Pair[] {
  return presentMembers(params).flatMap(([untrimmedKey, value]): readonly Pair[] => {
    const key = Array.isArray(params) ? untrimmedKey : untrimmedKey.trim()
    if (key.endsWith('{}') && typeof value === 'object') return [[key, JSON.stringify(value)]]
    if (isFlatList(value)) return pairsOfList(withoutBrackets(key), value, serializer)
    if (hasMembers(value)) return pairsOfMembers(value as object, [untrimmedKey], serializer)
    return [[key, textOf(value)]]
  })
}

/** A list of plain values as axios writes it: items are named `a[]`, `a[0]` with `indexes: true`, and `a` with `indexes: null`. */
function pairsOfList(key: string, items: readonly unknown[], serializer: Serializer): readonly Pair[] {
  const { indexes = false } = serializer
  return presentMembers(items).map(([index, item]) => {
    if (indexes === true) return [nestedName([key], index, serializer), textOf(item)]
    return [indexes === null ? key : `${key}[]`, textOf(item)]
  })
}

/** The members of an object or list among the parameters. `path` has the keys of the objects and lists around them, and its own. */
function pairsOfMembers(value: object, path: readonly string[], serializer: Serializer): readonly Pair[] {
  return presentMembers(value).flatMap(([untrimmedKey, member]): readonly Pair[] => {
    if (hasMembers(member)) return pairsOfMembers(member as object, [...path, untrimmedKey], serializer)
    const key = Array.isArray(value) ? untrimmedKey : untrimmedKey.trim()
    return [[nestedName(path, key, serializer), textOf(member)]]
  })
}

/** The name of a value inside of others: `a[b]`, or `a.b` with the option `dots`. A `[]` at the end of a key is cut off. */
function nestedName(path: readonly string[], key: string, { dots = false }: Serializer): string {
  const [first, ...inner] = [...path, key].map(withoutBrackets)
  return dots ? [first, ...inner].join('.') : `${first}${inner.map((part) => `[${part}]`).join('')}`
}

/** The keys and values of an object or list, without undefined and null. */
function presentMembers(value: unknown): readonly (readonly [string, unknown])[] {
  return Object.entries(value as object).filter(([, member]) => member !== undefined && member !== null)
}

/** Whether axios writes the members of a value one by one: those of a list or a plain object, but not of a date. */
function hasMembers(value: unknown): boolean {
  if (Array.isArray(value)) return true
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

/** Whether a value is a list of plain values, without lists or objects in it. */
function isFlatList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && !value.some(hasMembers)
}

/** A key without the `[]` at its end, with which a caller may have marked a list. */
function withoutBrackets(key: string): string {
  return key.endsWith('[]') ? key.slice(0, -2) : key
}

/** A value as axios writes it in a query: a date in ISO 8601, anything else as a string. */
function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value)
}

/** A text percent-encoded as axios does it, which leaves colons, dollars and commas and writes spaces as `+`. */
function encodedLoosely(text: string): string {
  return encodeURIComponent(text)
    .replace(/%3A/gi, ':')
    .replace(/%24/g, '$')
    .replace(/%2C/gi, ',')
    .replace(/%20/g, '+')
}

/** A text percent-encoded as by the encoder that axios hands to a user's `encode`: `!'()~` are encoded, spaces become `+`. */
function encodedStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()~]|%20/g, (char) => STRICT[char]!)
}

const STRICT: Readonly<Record<string, string>> = {
  '!': '%21',
  "'": '%27',
  '(': '%28',
  ')': '%29',
  '~': '%7E',
  '%20': '+',
}
