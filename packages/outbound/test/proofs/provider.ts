import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ProviderOptions {
  /** At most `limit` calls in any span of `windowMs`; the rest gets 429. */
  readonly limit: number
  readonly windowMs: number
  /** How long an answer takes; default: none. */
  readonly latencyMs?: number
  /** Whether answers tell what is left. */
  readonly tells?: boolean
}

/** The other side: it keeps its limit its own way, a log of instants on its own clock, and knows nothing of Sluice. */
export interface Provider {
  readonly origin: string
  /** Every call in the order of its arrival, with what was asked for in `?tag=`. */
  readonly calls: readonly Arrival[]
  readonly mostAtOnce: number
  close(): void
}

export interface Arrival {
  /** On the clock of `performance.now()`. */
  readonly at: number
  readonly accepted: boolean
  readonly tag: number
}

export async function startProvider(options: ProviderOptions): Promise<Provider> {
  const { limit, windowMs, latencyMs = 0, tells = false } = options
  const calls: Arrival[] = []
  const log: number[] = []
  let underWay = 0
  let mostAtOnce = 0
  const server = createServer((req, res) => {
    if (req.url === '/warm') return void res.end()
    const at = performance.now()
    while (log.length > 0 && log[0]! <= at - windowMs) log.shift()
    const accepted = log.length < limit
    if (accepted) log.push(at)
    calls.push({ at, accepted, tag: Number(new URL(req.url!, 'http://provider').searchParams.get('tag')) })
    mostAtOnce = Math.max(mostAtOnce, ++underWay)
    res.once('close', () => underWay--)
    const seconds = Math.ceil((log[0]! + windowMs - at) / 1000)
    if (tells) res.setHeader('RateLimit', `"calls";r=${limit - log.length};t=${seconds}`)
    if (!accepted) res.writeHead(429, { 'Retry-After': seconds }).end()
    else setTimeout(() => res.end('ok'), latencyMs)
  }).listen(0, '127.0.0.1')
  server.keepAliveTimeout = 60_000
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    get mostAtOnce() {
      return mostAtOnce
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Most calls in any span of `windowMs`. */
export function mostIn(calls: readonly Arrival[], windowMs: number): number {
  let most = 0
  for (let first = 0, last = 0; last < calls.length; last++) {
    while (calls[first]!.at <= calls[last]!.at - windowMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}
