import type { IncomingMessage, ServerResponse } from 'node:http'
import { keptHeadersOf } from './decisions.js'
import { PROXY_SETTING } from './forwarded-for.js'
import { hasHungUp, NODE_SERVER, onConnectionLost, onResponseSent, responseEnded } from './hung-up.js'
import type { KeptHeaders, Platform } from './platform.js'

/** The platform of requests and responses of Node, without proxies. */
export const nodePlatform: Platform<IncomingMessage, ServerResponse> = {
  identity: (req) => req,
  keepDecisions: () => 'beside',
  address: (req) => req.socket.remoteAddress,
  socketAddress: (req) => req.socket.remoteAddress,
  hungUp: hasHungUp,
  method: (req) => req.method,
  // Express keeps in `originalUrl` what a mounted router cuts off.
  url: (req) => (Reflect.get(req, 'originalUrl') as string | undefined) ?? req.url,
  header: (req, name) => req.headers[name]?.toString(),
  rawHeaders: (req) => req.rawHeaders,
  headersSent: (res) => res.headersSent,
  setHeader: (res, name, value) => void res.setHeader(name, value),
  atHead: overseeHead,
  setStatus: (res, status) => void (res.statusCode = status),
  send: (_req, res, _problem, text) => res.end(text),
  sendResult(res, body) {
    if (typeof body === 'string' || body instanceof Uint8Array) res.end(body)
    else res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
  },
  answersLate: true,
  onFinished: onResponseSent,
  onHungUp: (_req, res, listener) => onConnectionLost(res, listener),
  ended: (_req, res) => responseEnded(res),
  proxySetting: PROXY_SETTING,
  handlerFrame: NODE_SERVER,
}

/*
 * A handler may pass on the response of an upstream that has limits of its own. Two sets of headers about two limits would
 * contradict each other, so those of the limits here are kept until the head of the response is written. Then they stand in
 * place of the upstream's, or are left out where the upstream has denied the request: a client has to obey the one that denies.
 */

/** Matches the name of a header about limits: X-RateLimit-*, RateLimit, RateLimit-*, X-Rate-Limit-*; alone, or among others with commas. */
const LIMIT_HEADER = /(?:^|,)(?:x-)?rate-?limit(?:-|,|$)/i
/** The letters with which such a name begins. */
const [R, X] = [0x72, 0x78]
const LOWER_CASE = 0x20

/**
 * Makes room for the kept headers (of the limits here) in a response that has headers of these `names`: removes those about an
 * upstream's limits. Returns false, and removes nothing, if the response is a denial by the upstream: 429, or another error with
 * headers about limits and Retry-After. Its own headers stay alone then.
 */
export function makeRoom(
  status: number,
  names: readonly string[],
  remove: (name: string) => unknown,
): boolean {
  if (status === 429) return false
  let mayBeAboutLimits = false
  for (const name of names) {
    const first = name.charCodeAt(0) | LOWER_CASE
    if (first === R || first === X) mayBeAboutLimits = true
  }
  if (!mayBeAboutLimits || !LIMIT_HEADER.test(names.join())) return true // the usual case, without a list
  if (status >= 400 && names.some((name) => /^retry-after$/i.test(name))) return false
  names.filter((name) => LIMIT_HEADER.test(name)).forEach(remove)
  return true
}

type WriteHead = (this: ServerResponse, ...args: unknown[]) => ServerResponse

/**
 * Replaces the method `writeHead` of a Node response by one that adds `own` to the head: the headers that limits have kept for it.
 * Returns false if there is no such method, as in tests of handlers. `target` may also be a prototype of Express's responses:
 * without `own`, each response gets the headers that are kept for its request.
 */
export function overseeHead(target: ServerResponse, own?: KeptHeaders): boolean {
  const writeHead = Reflect.get(target, 'writeHead') as WriteHead | undefined
  if (!writeHead) return false
  const isWrapped = Object.hasOwn(target, 'writeHead') // by other software, such as on-headers
  const overseen: WriteHead = function writeHeadWithLimits(...args) {
    const kept = own ?? keptHeadersOf(Reflect.get(this, 'req'))
    if (kept?.size) addKept(this, kept, args, isWrapped)
    return writeHead.apply(this, args)
  }
  target.writeHead = overseen
  return true
}

/**
 * Adds the kept headers to the head of a response, unless it is a denial by an upstream (`makeRoom`). If `args`, the arguments of
 * its `writeHead`, have headers, they are added to these, otherwise they are set on the response.
 */
function addKept(res: ServerResponse, kept: KeptHeaders, args: unknown[], isWrapped: boolean): void {
  const place = args.length === 1 ? -1 : args.findIndex((arg) => typeof arg === 'object' && arg !== null)
  if (place >= 0) return addToArgument(res, kept, args, place, isWrapped)
  const status = args[0] as number
  // Express: `Reflect.get` is faster, see caller.ts.
  const namesSet: string[] = Reflect.get(res, 'getHeaderNames').call(res)
  if (!makeRoom(status, namesSet, (name) => res.removeHeader(name))) return
  const setHeader = Reflect.get(res, 'setHeader')
  for (const [name, value] of kept) setHeader.call(res, name, value)
}

/**
 * Adds the kept headers to those in the argument at `place` of a call of `writeHead`, unless the response is a denial by an
 * upstream. Headers there are a list of names and values or of pairs, which stays one, or an object. An object becomes a list, to
 * which adding is faster, unless `isWrapped`: on-headers before 1.1 takes any list for pairs.
 */
function addToArgument(
  res: ServerResponse,
  kept: KeptHeaders,
  args: unknown[],
  place: number,
  isWrapped: boolean,
): void {
  const status = args[0] as number
  const given = args[place] as Record<string, unknown> | unknown[]
  /** A name, its value, the next name, and so on. */
  const namesAndValues = flatList(given)
  const namesSet: string[] = Reflect.get(res, 'getHeaderNames').call(res)
  const namesGiven = Array.isArray(given)
    ? (namesAndValues.filter((_, i) => i % 2 === 0) as string[])
    : Object.keys(given)
  const removed: unknown[] = []
  const remove = (name: string): void => {
    res.removeHeader(name)
    removed.push(name)
  }
  if (!makeRoom(status, namesSet.length === 0 ? namesGiven : [...namesSet, ...namesGiven], remove)) return
  const nameAt = (i: number): unknown => namesAndValues[i - (i % 2)] // of a name or of its value
  const isRemoved = (i: number): boolean => removed.includes(nameAt(i))
  const head = removed.length === 0 ? namesAndValues : namesAndValues.filter((_, i) => !isRemoved(i))
  kept.forEach((value, name) => head.push(name, value))
  const pairs = () => head.flatMap((name, i) => (i % 2 === 0 ? [[name, head[i + 1]]] : []))
  if (!Array.isArray(given)) args[place] = isWrapped ? Object.fromEntries(pairs()) : head
  else args[place] = Array.isArray(given[0]) ? pairs() : head
}

/** A new list with names and values in turn, of headers as `writeHead` takes them: an object, such a list, or a list of pairs. */
function flatList(given: Readonly<Record<string, unknown>> | readonly unknown[]): unknown[] {
  if (Array.isArray(given)) return Array.isArray(given[0]) ? given.flat() : [...given]
  const list: unknown[] = []
  for (const name of Object.keys(given)) list.push(name, (given as Readonly<Record<string, unknown>>)[name])
  return list
}

/**
 * Has a response of an Express application get the kept headers with its head. Express sets the prototype of each response, which
 * makes it slow to add a property: so `writeHead` is replaced once, on a prototype that all of them have, and on the response only
 * where that has a method of its own or no such prototype. Returns false if there is no method, as `overseeHead` does.
 */
export function overseeHeads(res: ServerResponse): boolean {
  // A method of its own, as compression and sessions set one, may have looked up that of the prototype before.
  if (Object.hasOwn(res, 'writeHead')) return overseeHead(res)
  const prototype = Object.getPrototypeOf(res) as ServerResponse
  if (OVERSEEN.has(prototype)) return true
  // The object that has the method, and the one below it, which inherits it at once.
  let [owner, below]: [ServerResponse | null, ServerResponse] = [prototype, res]
  while (owner && !Object.hasOwn(owner, 'writeHead')) {
    below = owner
    owner = Object.getPrototypeOf(owner) as ServerResponse | null
  }
  if (!owner) return false
  const isOverseen = OVERSEEN.has(Reflect.get(owner, 'writeHead')) // for the responses of another application
  if (!isOverseen) overseeHead(below)
  const concernsAllResponses = isOverseen || below !== res
  if (concernsAllResponses) OVERSEEN.add(prototype).add(Reflect.get(res, 'writeHead'))
  return true
}

/** The methods that add kept headers, and the prototypes whose responses have them. */
const OVERSEEN = new WeakSet<object>()
