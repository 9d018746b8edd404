import type { Call, Reply } from './call.js'
import type { RequestController } from './relay-controller.js'

export type Dispatch = (options: DispatchOptions, handler: Handler) => boolean

/** `history`: the addresses that were redirected, the one that answered last. */
export interface Context {
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

/** What undici reports of a request, since version 7. */
export interface Handler {
  onRequestStart?(controller: RequestController, context: Context): void
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

/** A `Client` or `Pool` keeps its origin to itself. */
const NOWHERE = 'http://origin.invalid'

export function callOf({ origin = NOWHERE, path, method, headers }: DispatchOptions): Call {
  return {
    url: new URL(path, origin),
    method: method.toUpperCase(),
    header: (name) => pairsOf(headers).find(([key]) => key.toLowerCase() === name)?.[1],
  }
}

/** undici takes headers as an object, as pairs, and as a flat list. */
function pairsOf(headers: unknown): readonly (readonly [string, string])[] {
  if (typeof headers !== 'object' || headers === null) return []
  const list: readonly unknown[] = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : []
  if (typeof list[0] === 'string') {
    return list.flatMap((key, i) => (i % 2 === 0 ? [[String(key), String(list[i + 1])] as const] : []))
  }
  return list.length > 0 ? (list as [string, string][]) : Object.entries(headers as Record<string, string>)
}

export function replyOf(status: number, headers: HeaderValues, url: string | undefined): Reply {
  return {
    status,
    url,
    header(name) {
      const value = headers[name]
      return typeof value === 'string' || value === undefined ? value : value.join(', ')
    },
  }
}
