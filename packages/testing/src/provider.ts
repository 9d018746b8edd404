import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getPriority, setPriority } from 'node:os'

export interface ProviderOptions {
  /** At most `limit` calls in any span of `windowMs`; the rest gets 429. */
  readonly limit: number
  readonly windowMs: number
  /**
   * How long an answer takes, in milliseconds.
   * @default 0
   */
  readonly latencyMs?: number
  /**
   * Most calls that it serves at once; the rest gets 429.
   * @default not bounded
   */
  readonly atOnce?: number
  /**
   * Whether a 429 has a Retry-After.
   * @default true
   */
  readonly states?: boolean
  /**
   * Whether answers have a RateLimit header, which tells what is left.
   * @default false
   */
  readonly tells?: boolean
  /**
   * Its reply to a call that arrives so many milliseconds after the first: undefined as its limit says, 'nothing' for no reply
   * and an open connection.
   * @default always as its limit says
   */
  readonly answer?: (atMs: number) => ProviderReply | 'nothing' | undefined
}

export interface ProviderReply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** A text, or what becomes JSON. */
  readonly body?: unknown
}

/** Made by `startProvider`. */
export interface Provider {
  readonly origin: string
  /** Every call in the order of its arrival, with what was asked for in `?tag=`. */
  readonly calls: readonly Arrival[]
  /** Most calls that were under way at once. */
  readonly mostAtOnce: number
  /** Ends the server and its connections. */
  close(): void
}

export interface Arrival {
  /** On the clock of `performance.now()`. */
  readonly at: number
  readonly accepted: boolean
  /** The Retry-After of one that was not, in milliseconds; 0 where a reply of `answer` has none in seconds. */
  readonly retryAfterMs: number
  readonly tag: number
}

/**
 * Starts an HTTP server on loopback that keeps a limit its own way, by a log of the instants of accepted calls on its own clock,
 * and knows nothing of Sluice. It answers 200, or 429 with Retry-After, unless `answer` says otherwise for a call. Every call is
 * noted in `calls`, but for one of `/warm`, with which a client opens a connection beforehand. While it runs, this process has a
 * higher priority if it may, because the server stands for another machine, which is not late when this one is busy.
 * @example
 * const provider = await startProvider({ limit: 100, windowMs: 1000 })
 * await fetch(provider.origin)
 * provider.close()
 */
export async function startProvider(options: ProviderOptions): Promise<Provider> {
  const { limit, windowMs, latencyMs = 0, atOnce = Infinity, states = true, tells = false, answer } = options
  const restorePriority = raisePriority()
  const calls: Arrival[] = []
  const log: number[] = []
  // `underWay` counts all open calls, `serving` those that the limit accepted and that are not answered yet.
  let underWay = 0
  let serving = 0
  let mostAtOnce = 0
  const server = createServer((req, res) => {
    if (req.url === '/warm') return void res.end()
    const at = performance.now()
    while (log.length > 0 && log[0]! <= at - windowMs) log.shift() // out of the window
    // The reply that the test chose for this call; undefined if the limit decides.
    const chosenReply = answer?.(at - (calls[0]?.at ?? at))
    const hasRoom = log.length < limit && serving < atOnce
    const accepted =
      chosenReply === undefined ? hasRoom : chosenReply !== 'nothing' && chosenReply.status < 400
    if (accepted) log.push(at)
    mostAtOnce = Math.max(mostAtOnce, ++underWay)
    res.once('close', () => underWay--)
    // Where no accepted call counts, it has as many open as it serves at once: one of them ends with its latency.
    const waitMs = log.length > 0 ? log[0]! + windowMs - at : Math.max(1, latencyMs)
    const seconds = Math.ceil(waitMs / 1000)
    const stated = chosenReply === undefined ? seconds : secondsOf(chosenReply)
    const tag = Number(new URL(req.url!, 'http://provider').searchParams.get('tag'))
    calls.push({ at, accepted, retryAfterMs: accepted ? 0 : stated * 1000, tag })
    if (chosenReply === 'nothing') return
    if (chosenReply) return void setTimeout(() => reply(res, chosenReply), latencyMs)
    if (tells) res.setHeader('RateLimit', `"calls";r=${limit - log.length};t=${seconds}`)
    if (!accepted) res.writeHead(429, states ? { 'Retry-After': seconds } : {}).end()
    else {
      serving++
      setTimeout(() => {
        serving--
        res.end('ok')
      }, latencyMs)
    }
  }).listen(0, '127.0.0.1')
  server.keepAliveTimeout = 60_000
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    get mostAtOnce() {
      return mostAtOnce
    },
    /**
     * Ends the server, and its open connections, which would keep it up. Then sets the priority of the process back, which
     * `startProvider` raised so that the server answers in time.
     */
    close() {
      server.close()
      server.closeAllConnections()
      restorePriority()
    },
  }
}

/** The Retry-After of a reply that a test has chosen, in seconds; 0 where it has none, or a date. */
function secondsOf(chosenReply: ProviderReply | 'nothing'): number {
  const headers = chosenReply === 'nothing' ? {} : (chosenReply.headers ?? {})
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'retry-after') ?? []
  return Number(value) || 0
}

/** Sends a reply that a test has chosen: its status, its headers, and its body, a text as it is and any other value as JSON. */
function reply(res: ServerResponse, { status, headers, body = '' }: ProviderReply): void {
  const isText = typeof body === 'string'
  const text = isText ? body : JSON.stringify(body)
  const type = isText ? 'text/plain' : 'application/json'
  res
    .writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers })
    .end(text)
}

/**
 * Raises the priority of this process (-19 is nearly the highest) where the system allows that; it usually does not to an
 * ordinary user, which is no failure. Returns a function that sets the priority back.
 */
function raisePriority(): () => void {
  const before = getPriority()
  try {
    setPriority(-19)
  } catch {
    // An ordinary user may not.
  }
  return () => setPriority(before)
}

/**
 * The most calls that arrived in any span of `windowMs` milliseconds, for a test to compare with a provider's limit. `at` is in
 * milliseconds; calls are in the order of their arrival. The span slides: `first` is the oldest call that is less than `windowMs`
 * before `last`.
 */
export function mostIn(calls: readonly { readonly at: number }[], windowMs: number): number {
  let most = 0
  for (let first = 0, last = 0; last < calls.length; last++) {
    while (calls[first]!.at <= calls[last]!.at - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}
