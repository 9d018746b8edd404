import type { AddressInfo, Server } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { byApiKey, byUser, type RequestLimitOptions } from '@sluice/http'
import type { Adapter, Answer, Route } from './adapter.js'
import { send } from './client.js'
import { stopped } from './limits.js'
import { type Protocol, PROTOCOLS, sendAndReset, serveOver } from './protocols.js'
import type { Trial } from './trial.js'

const LIMIT = 10

/** The most requests of callers at 127.0.0.1 that the handler of each route may see. */
const MOST = { limited: LIMIT, user: LIMIT, 'api-key': LIMIT, listed: LIMIT, denied: 0, banned: 0 }
type Path = keyof typeof MOST

interface Reset {
  readonly protocol: Protocol
  /** Whether the application awaits something before the limits. */
  readonly late: boolean
}

/** Callers that reset their connections with a request on its way gain nothing, whatever speaks for a second allowance. */
export function resetTrials<Req, Res>(adapter: Adapter<Req, Res>): readonly Trial[] {
  return PROTOCOLS.flatMap((protocol) =>
    [false, true].map((late): Trial => ({
      name: `get no second allowance over ${protocol}${late ? ', after something was waited for' : ''}`,
      needs: ['connections without an address', ...(protocol === 'HTTP/2' ? [protocol] : [])],
      run: (count: number) => reset(adapter, { protocol, late }, count),
    })),
  )
}

/**
 * Sends requests on many connections and resets each before it is answered: half of them one after another, and half at
 * once.
 */
async function reset<Req, Res>(
  adapter: Adapter<Req, Res>,
  { protocol, late }: Reset,
  count: number,
): Promise<string[]> {
  const handled: Partial<Record<Path, number>> = {}
  const wrong: string[] = []
  const routes = await routesOf<Req, Res>((path) => (handled[path] = (handled[path] ?? 0) + 1))
  const app = await adapter.serve({
    routes: [...routes, { path: '/free', limits: [], answer: () => SERVED }],
    proxyTrust: 'none',
    ...(late && { before: () => turn() }),
    // Koa reports the connections that broke.
    onError: (error) => void ('errno' in Object(error) || wrong.push(String(error))),
  })
  const { server, close } = await serveOver(protocol, app)
  try {
    const { port } = server.address() as AddressInfo
    const paths = routes.map(({ path }) => path)
    const { port: direct } = app.server.address() as AddressInfo
    // What the address of these callers may have is used up, so that one more is a second allowance.
    for (const path of paths) for (let i = 0; i < LIMIT; i++) await send(direct, { path })
    const arrived = arrivals(server, count)
    const resetNext = (i: number) => sendAndReset(protocol, port, paths[i % paths.length]!)
    for (let i = 0; i < count / 2; i++) await resetNext(i)
    await Promise.all(Array.from({ length: count / 2 }, (_, i) => resetNext(i)))
    await arrived
    // Whatever these requests wait for is over when one that came after them is answered.
    await send(direct, { path: '/free' })
    await turn()
    for (const path of Object.keys(MOST) as Path[]) {
      const requests = handled[path] ?? 0
      if (requests > MOST[path])
        wrong.push(`${path}: ${requests} requests were handled, at most ${MOST[path]} may be`)
    }
    return wrong
  } finally {
    await close()
    await app.close()
  }
}

/** Resolves when a server has seen `count` requests. */
function arrivals(server: Server, count: number): Promise<void> {
  let arrived = 0
  return new Promise((resolve) => {
    server.on('request', () => void (++arrived === count && resolve()))
  })
}

const SERVED: Answer = { body: 'served' }

/** A route for each way to be refused or let through. `handle` is called with the path of each request that reaches a handler. */
async function routesOf<Req, Res>(handle: (path: Path) => void): Promise<Route<Req, Res>[]> {
  const banned = stopped(LIMIT)
  await banned.block('ip:127.0.0.1', '1h')
  const options: Record<Path, RequestLimitOptions<Req, Res>> = {
    limited: {},
    user: { key: byUser(() => undefined) },
    'api-key': { key: byApiKey() },
    listed: { allow: ['10.0.0.0/8'] },
    denied: { deny: ['127.0.0.0/8'] },
    banned: { limiter: banned },
  }
  return (Object.keys(MOST) as Path[]).map((path) => {
    const limiter = stopped(LIMIT)
    limiter.on('warning', () => {})
    const answer = () => {
      handle(path)
      return SERVED
    }
    return { path: `/${path}`, limits: [{ limiter, ...options[path] }], answer }
  })
}
