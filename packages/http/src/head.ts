import type { ServerResponse } from 'node:http'

/*
 * A handler may pass on the response of an upstream that has limits of its own. Two sets of headers about two limits would
 * contradict each other, so those of the limits here are kept until the head of the response is written. Then they stand in
 * place of the upstream's, or are left out where the upstream has denied the request: a client has to obey the one that denies.
 */

/** The headers of limits that a response gets with its head, by their names. */
export type KeptHeaders = Map<string, string>

/** X-RateLimit-*, RateLimit and RateLimit-*, and with the hyphen that some write: X-Rate-Limit-*. */
const OF_LIMITS = /^(?:x-)?rate-?limit(?:-|$)/i

/**
 * Whether the kept headers have a place in a response that has headers of these names: not if it is itself a
 * denial. Those about limits that it has already are removed then.
 */
export function makesRoom(
  status: number,
  names: readonly string[],
  remove: (name: string) => unknown,
): boolean {
  const others = names.filter((name) => OF_LIMITS.test(name))
  const isDenial = status >= 400 && others.length > 0 && names.some((name) => /^retry-after$/i.test(name))
  if (status === 429 || isDenial) return false
  others.forEach(remove)
  return true
}

type WriteHead = (this: ServerResponse, ...args: unknown[]) => ServerResponse

type KeptOf = (res: ServerResponse) => KeptHeaders | undefined

/**
 * Has responses of Node get the kept headers with their heads: `target` is one, or a prototype of some. False if it is
 * none of Node, as in tests of handlers.
 */
export function overseeHead(target: ServerResponse, keptOf: KeptOf): boolean {
  const writeHead = Reflect.get(target, 'writeHead') as WriteHead | undefined
  if (!writeHead) return false
  const overseen: WriteHead = function writeHeadWithLimits(...args) {
    const kept = keptOf(this)
    if (kept?.size) putInto(this, kept, args)
    return writeHead.apply(this, args)
  }
  OVERSEEN.add(overseen)
  target.writeHead = overseen
  return true
}

/** Puts the kept headers into a response of Node, and into `args`, with which its `writeHead` was called. */
function putInto(res: ServerResponse, kept: KeptHeaders, args: unknown[]): void {
  // Reflect, as in `propertyOf`: faster on the responses of Express.
  const names = Reflect.get(res, 'getHeaderNames').call(res)
  const at = args.length === 1 ? -1 : args.findIndex((each) => typeof each === 'object' && each !== null)
  const status = args[0] as number
  if (at < 0) {
    if (!makesRoom(status, names, (name) => res.removeHeader(name))) return
    const setHeader = Reflect.get(res, 'setHeader')
    return kept.forEach((value, name) => setHeader.call(res, name, value))
  }
  const head = headOf(args[at] as object)
  const remove = (name: string) => (res.removeHeader(name), delete head[name])
  if (!makesRoom(status, [...names, ...Object.keys(head)], remove)) return
  kept.forEach((value, name) => (head[name] = value))
  args[at] = head
}

/** A copy of the headers that `writeHead` was given: an object, or a list of names and values in turn. */
function headOf(given: object): Record<string, unknown> {
  // Not a spread, to which properties are added slowly.
  if (!Array.isArray(given)) return Object.assign({}, given as {})
  const head: Record<string, unknown> = {}
  given.forEach((name: string, i) => {
    if (i % 2 === 0) head[name] = name in head ? [head[name], given[i + 1]].flat() : given[i + 1]
  })
  return head
}

/**
 * Has all responses of an Express application get the kept headers with their heads. Express sets the prototype of each, to
 * which a property is added only slowly: so the method is put on the prototype that all have, once. False as above.
 */
export function overseeHeads(res: ServerResponse, keptOf: KeptOf): boolean {
  const own = Object.getPrototypeOf(res) as ServerResponse
  if (OVERSEEN.has(own)) return true
  let [target, above]: [ServerResponse, ServerResponse | null] = [res, own]
  while (above && !Object.hasOwn(above, 'writeHead')) {
    target = above
    above = Object.getPrototypeOf(above) as ServerResponse | null
  }
  const isOverseen = above !== null && OVERSEEN.has(Reflect.get(above, 'writeHead'))
  if (!isOverseen && !overseeHead(above ? target : res, keptOf)) return false
  if (isOverseen || target !== res) OVERSEEN.add(own)
  return true
}

/** The methods that put headers into heads, and the prototypes whose responses have them. */
const OVERSEEN = new WeakSet<object>()
