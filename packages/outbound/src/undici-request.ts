import type { RequestController } from './relay-controller.js'
import type { OutboundReply, OutboundRequest } from './request.js'

export type Dispatch = (options: DispatchOptions, handler: Handler) => boolean

/** `history` lists the addresses of all redirects, and last the one that replied. */
export interface RequestContext {
  readonly history?: readonly URL[]
}

export interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly headers?: unknown
  readonly body?: unknown
}

export type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** The callbacks by which undici reports on a request, since version 7. */
export interface Handler {
  onRequestStart?(controller: RequestController, context: RequestContext): void
  onRequestUpgrade?(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    socket: unknown,
  ): void
  onResponseStart?(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    message?: string,
  ): void
  onResponseData?(controller: RequestController, chunk: Uint8Array): void
  onResponseEnd?(controller: RequestController, trailers: HeaderValues): void
  onResponseError?(controller: RequestController, error: Error): void
}

/** A `Client` or `Pool` does not report its origin. */
const NOWHERE = 'http://origin.invalid'

/**
 * The request of an undici call, in the form in which the functions among a client's options get it, such as `key` and `cost`. A
 * `Client` or `Pool` does not report its origin; `NOWHERE` then stands for it.
 */
export function requestOf({ origin = NOWHERE, path, method, headers }: DispatchOptions): OutboundRequest {
  return {
    url: urlOf(origin, path),
    method: method.toUpperCase(),
    header: (name) => pairsOf(headers).find(([given]) => given.toLowerCase() === name)?.[1],
  }
}

/**
 * The URL of a request. The path is joined to the origin as text: `new URL(path, origin)` would take one that begins with two
 * slashes for the name of another host. A path without a slash at its beginning may be a whole URL, as a proxy gets it.
 */
function urlOf(origin: string | URL, path: string): URL {
  return path.startsWith('/') ? new URL(new URL(origin).origin + path) : new URL(path, origin)
}

/**
 * The names and values of headers in any form that undici accepts: an object, pairs, or a flat list in which each name is followed
 * by its value. Empty for anything else.
 */
function pairsOf(headers: unknown): readonly (readonly [string, string])[] {
  if (typeof headers !== 'object' || headers === null) return []
  const list: readonly unknown[] = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : []
  const isFlat = typeof list[0] === 'string'
  if (isFlat) {
    return list.flatMap((name, i) => (i % 2 === 0 ? [[String(name), String(list[i + 1])] as const] : []))
  }
  return list.length > 0 ? (list as [string, string][]) : Object.entries(headers as Record<string, string>)
}

/** The reply to an undici call, as the functions among a client's options get it. Values of one header are joined by commas. */
export function replyOf(status: number, headers: HeaderValues, url: string | undefined): OutboundReply {
  return {
    status,
    url,
    names: () => Object.keys(headers),
    /** The value of a header by its name in lower case; undefined if it is absent. Several values are joined by commas. */
    header(name) {
      const value = headers[name]
      return typeof value === 'string' || value === undefined ? value : value.join(', ')
    },
  }
}
