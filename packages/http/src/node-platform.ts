import type { IncomingMessage, ServerResponse } from 'node:http'
import { keptBeside } from './decisions.js'
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

/** X-RateLimit-*, RateLimit and RateLimit-*, and with the hyphen that some write: X-Rate-Limit-*; alone, or among others. */
const OF_LIMITS = /(?:^|,)(?:x-)?rate-?limit(?:-|,|$)/i

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

/**
 * Has a response of Node get the kept headers with its head. False if it is none of Node, as in tests of handlers. `target` may
 * also be a prototype of responses of Express, whose headers are kept beside their requests.
 */
export function overseeHead(target: ServerResponse, own?: KeptHeaders): boolean {
  const writeHead = Reflect.get(target, 'writeHead') as WriteHead | undefined
  if (!writeHead) return false
  /** Whether other software has wrapped the method: on-headers before 1.1 takes a list of names and values for one of pairs. */
  const isWrapped = Object.hasOwn(target, 'writeHead')
  const overseen: WriteHead = function writeHeadWithLimits(...args) {
    const kept = own ?? keptBeside.get(Reflect.get(this, 'req'))?.kept
    if (!kept?.size) return writeHead.apply(this, args)
    const isPlain = args.length === 1 && args[0] !== 429
    if (isPlain && !OF_LIMITS.test(Reflect.get(this, 'getHeaderNames').call(this).join())) {
      const setHeader = Reflect.get(this, 'setHeader')
      for (const [name, value] of kept) setHeader.call(this, name, value)
    } else putInto(this, kept, args, isWrapped)
    return writeHead.apply(this, args)
  }
  target.writeHead = overseen
  return true
}

/**
 * Puts the kept headers into a response of Node, and into `args`, with which its `writeHead` was called. A list of pairs stays
 * one, and where `isWrapped` an object of headers does.
 */
function putInto(res: ServerResponse, kept: KeptHeaders, args: unknown[], isWrapped: boolean): void {
  const names = res.getHeaderNames()
  const at = args.length === 1 ? -1 : args.findIndex((each) => typeof each === 'object' && each !== null)
  const status = args[0] as number
  if (at < 0) {
    if (!makesRoom(status, names, (name) => res.removeHeader(name))) return
    return kept.forEach((value, name) => res.setHeader(name, value))
  }
  // A list has names and values in turn, or pairs of them.
  const given = args[at] as Record<string, unknown> | unknown[]
  const isList = Array.isArray(given)
  const isPairs = isList ? Array.isArray(given[0]) : isWrapped
  const list = isList && (isPairs ? given.flat() : given)
  const own = list ? (list.filter((_, i) => i % 2 === 0) as string[]) : Object.keys(given)
  const removed: string[] = []
  const remove = (name: string): void => {
    res.removeHeader(name)
    removed.push(name)
  }
  if (!makesRoom(status, names.length === 0 ? own : [...names, ...own], remove)) return
  const head: unknown[] = [] // an object would take longer to add to
  const put = (value: unknown, name: string): unknown =>
    isPairs ? head.push([name, value]) : head.push(name, value)
  own.forEach((name, i) => {
    if (!removed.includes(name)) put(list ? list[2 * i + 1] : (given as Record<string, unknown>)[name], name)
  })
  kept.forEach(put)
  args[at] = isPairs && !isList ? Object.fromEntries(head as [string, unknown][]) : head
}

/**
 * Has a response of an Express application get the kept headers with its head. Express sets the prototype of each, to which a
 * property is added only slowly: so the method is put once on the prototype that all have, and on a response only where it
 * has a method of its own. False as above.
 */
export function overseeHeads(res: ServerResponse): boolean {
  // Its own method, as compression and sessions set one, may have looked up that of the prototype before.
  if (Object.hasOwn(res, 'writeHead')) return overseeHead(res)
  const own = Object.getPrototypeOf(res) as ServerResponse
  if (OVERSEEN.has(own)) return true
  let [target, above]: [ServerResponse, ServerResponse | null] = [res, own]
  while (above && !Object.hasOwn(above, 'writeHead')) {
    target = above
    above = Object.getPrototypeOf(above) as ServerResponse | null
  }
  const isOverseen = above !== null && OVERSEEN.has(Reflect.get(above, 'writeHead'))
  if (!isOverseen && !overseeHead(above ? target : res)) return false
  if (isOverseen || target !== res) OVERSEEN.add(own).add(Reflect.get(res, 'writeHead'))
  return true
}

/** The methods that put headers into heads, and the prototypes whose responses have them. */
const OVERSEEN = new WeakSet<object>()
