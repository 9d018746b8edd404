/** The parts of a config from which axios builds the URL. */
export interface AxiosAddress {
  readonly url?: string
  readonly baseURL?: string
  readonly allowAbsoluteUrls?: boolean
  readonly params?: unknown
  readonly paramsSerializer?: unknown
}

interface Serializer {
  readonly encode?: (value: string, byDefault: (value: string) => string) => string
  readonly serialize?: (params: unknown, options: unknown) => string
  readonly indexes?: boolean | null
  readonly dots?: boolean
}

/**
 * The URL to which axios sends a request, with its base and parameters, as `axios.getUri` builds it. An adapter has no `getUri`,
 * and axios is not imported only for that. As in axios, a fragment (`#...`) is cut off where parameters are added.
 */
export function urlOf(address: AxiosAddress): URL {
  const path = pathOf(address)
  const query = queryOf(address)
  if (query === '') return new URL(path)
  const bare = path.includes('#') ? path.slice(0, path.indexOf('#')) : path
  return new URL(`${bare}${bare.includes('?') ? '&' : '?'}${query}`)
}

/**
 * Joins the `baseURL` and the `url` of a request as axios does, before `params` are added; `url` may have a query already. An
 * absolute `url` stands alone, unless `allowAbsoluteUrls` is false. The slashes between the two become one.
 */
function pathOf({ url = '', baseURL, allowAbsoluteUrls }: AxiosAddress): string {
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
function queryOf({ params, paramsSerializer }: AxiosAddress): string {
  if (!params) return ''
  const options = (
    typeof paramsSerializer === 'function' ? { serialize: paramsSerializer } : (paramsSerializer ?? {})
  ) as Serializer
  if (options.serialize) return options.serialize(params, options)
  if (params instanceof URLSearchParams) return params.toString()
  const encode = options.encode
  const encoded = encode ? (text: string) => encode(text, byDefault) : encodedLoosely
  return pairsOf(params, options)
    .map(([key, value]) => `${encoded(key)}=${encoded(value)}`)
    .join('&')
}

/**
 * The names and values of a query, before they are encoded; undefined and null are left out. As in axios, a member of an object is
 * named `a[b]` (`a.b` with `dots`), and a member of a list of plain values `a[]` (`a[0]` with `indexes: true`, `a` with null). A name
 * that ends in `{}` has JSON as its value.
 */
function pairsOf(params: unknown, options: Serializer): readonly (readonly [string, string])[] {
  const { indexes = false, dots = false } = options
  const pairs: (readonly [string, string])[] = []
  /**
   * Makes the name that a value has in the query from its key and from `path`, the names of the objects and lists around it:
   * `a[b]`, or `a.b` with the option `dots`. Without a path the key is the name. As in axios, `bare` cuts a `[]` off the end of
   * each part, so that a list whose name has one already does not get a second.
   */
  const render = (path: readonly string[], key: string): string =>
    path.length === 0
      ? key
      : [...path, key]
          .map(bare)
          .map((part, i) => (dots || i === 0 ? part : `[${part}]`))
          .join(dots ? '.' : '')
  /**
   * Adds the members of an object or list to `pairs`. `path` is the names of the objects and lists around it, empty for the
   * parameters themselves. As in axios, only a member of the parameters is written as JSON or as `a[]`; further in, lists get
   * indexes.
   */
  const visit = (value: unknown, path: readonly string[]): void => {
    for (const [name, inner] of Object.entries(value as object)) {
      if (inner === undefined || inner === null) continue
      const key = Array.isArray(value) ? name : name.trim()
      if (path.length === 0 && key.endsWith('{}') && typeof inner === 'object') {
        pairs.push([key, JSON.stringify(inner)])
      } else if (path.length === 0 && isFlatList(inner)) {
        for (const [i, item] of inner.entries()) {
          if (item === undefined || item === null) continue
          const listName = bare(key)
          pairs.push([
            indexes === true ? render([listName], String(i)) : indexes === null ? listName : `${listName}[]`,
            textOf(item),
          ])
        }
      } else if (isVisitable(inner)) visit(inner, [...path, name])
      else pairs.push([render(path, key), textOf(inner)])
    }
  }
  visit(params, [])
  return pairs
}

/**
 * Whether axios writes the members of a value one by one, as it does with lists and plain objects. It writes a date, for example,
 * as one value.
 */
function isVisitable(value: unknown): boolean {
  if (Array.isArray(value)) return true
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

/** Whether a value is a list of plain values, without lists or objects in it. */
function isFlatList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && !value.some(isVisitable)
}

/** A name without the `[]` at its end, with which a caller may have marked a list. */
function bare(key: string): string {
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

/**
 * Percent-encodes a text as axios' default encoder does, which a user's `encode` gets as its second argument: `!'()~` are encoded
 * too, and spaces become `+`.
 */
function byDefault(text: string): string {
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
