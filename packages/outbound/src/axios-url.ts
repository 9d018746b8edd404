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

/**
 * The names and values of a query, before they are encoded; undefined and null are left out. As in axios, a member of an object is
 * named `a[b]` (`a.b` with `dots`), and an item of a list of plain values `a[]` (`a[0]` with `indexes: true`, `a` with null). A name
 * that ends in `{}` has JSON as its value.
 */
function pairsOf(params: unknown, serializer: Serializer): readonly (readonly [string, string])[] {
  const { indexes = false, dots = false } = serializer
  const pairs: (readonly [string, string])[] = []
  /**
   * The name that a value has in the query: `a[b]`, or `a.b` with the option `dots`, where `path` has the keys of the objects and
   * lists around the value (`a`), and `key` is its own (`b`). As in axios, a `[]` at the end of a key is cut off, unless the key
   * stands alone.
   */
  const nameOf = (path: readonly string[], key: string): string =>
    path.length === 0
      ? key
      : [...path, key]
          .map(withoutBrackets)
          .map((part, i) => (dots || i === 0 ? part : `[${part}]`))
          .join(dots ? '.' : '')
  const addList = (key: string, items: readonly unknown[]): void => {
    for (const [i, item] of items.entries()) {
      if (item === undefined || item === null) continue
      const name = indexes === true ? nameOf([key], String(i)) : indexes === null ? key : `${key}[]`
      pairs.push([name, textOf(item)])
    }
  }
  /**
   * Adds the members of an object or list to `pairs`. `path` has the keys of the objects and lists around them, none for the
   * parameters themselves. As in axios, only a member of the parameters is written as JSON or as `a[]`, further in lists get
   * indexes; and the space around a key is left out, but not in `path`.
   */
  const addMembers = (value: unknown, path: readonly string[]): void => {
    for (const [untrimmedKey, member] of Object.entries(value as object)) {
      if (member === undefined || member === null) continue
      const key = Array.isArray(value) ? untrimmedKey : untrimmedKey.trim()
      if (path.length === 0 && key.endsWith('{}') && typeof member === 'object') {
        pairs.push([key, JSON.stringify(member)])
      } else if (path.length === 0 && isFlatList(member)) addList(withoutBrackets(key), member)
      else if (hasMembers(member)) addMembers(member, [...path, untrimmedKey])
      else pairs.push([nameOf(path, key), textOf(member)])
    }
  }
  addMembers(params, [])
  return pairs
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
