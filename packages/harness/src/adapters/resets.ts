import type { AddressInfo, Server } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { byApiKey, byUser, type GuardOptions } from '@sluice/core/http'
import type { Adapter, Answer, Route } from './adapter.js'
import { send } from './client.js'
import { stopped } from './limits.js'
import { type Protocol, PROTOCOLS, sendAndReset, serveOver } from './protocols.js'

const LIMIT = 10

/** The most requests of callers at 127.0.0.1 that the handler of each route may see. */
const MOST = { limited: LIMIT, user: LIMIT, 'api-key': LIMIT, listed: LIMIT, denied: 0, banned: 0 }
type Path = keyof typeof MOST

export interface Reset {
  readonly protocol: Protocol
  /** Whether the application awaits something before the limits. */
  readonly late: boolean
}

/** Every way of the kit to reset connections to an adapter. */
export function resetsOf({ lacks }: Adapter<never, never>): readonly Reset[] {
  const protocols = PROTOCOLS.filter((protocol) => protocol !== 'HTTP/2' || !lacks?.['HTTP/2'])
  return protocols.flatMap((protocol) => [
    { protocol, late: false },
    { protocol, late: true },
  ])
}

/** What became of the requests on connections that were reset. */
export interface AfterResets {
  /** The routes whose handlers saw more requests than they may, each with how many. */
  readonly exceeded: Readonly<Record<string, number>>
  /** What reached the error handling of the framework, except for connections that broke, which Koa reports. */
  readonly errors: readonly unknown[]
}

/** Resets `count` connections with a request each, half of them one after another and half at once; an even number. */
export async function afterResets<Req, Res>(
  adapter: Adapter<Req, Res>,
  { protocol, late }: Reset,
  count: number,
): Promise<AfterResets> {
  const handled: Partial<Record<Path, number>> = {}
  const errors: unknown[] = []
  const routes = await routesOf<Req, Res>((path) => (handled[path] = (handled[path] ?? 0) + 1))
  const app = await adapter.serve({
    routes: [...routes, { path: '/free', limits: [], answer: () => SERVED }],
    proxyTrust: 'none',
    ...(late && { before: () => turn() }),
    onError: (error) => void ('errno' in Object(error) || errors.push(error)),
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
    const exceeded = Object.entries(handled).filter(([path, requests]) => requests > MOST[path as Path])
    return { exceeded: Object.fromEntries(exceeded), errors }
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

async function routesOf<Req, Res>(handle: (path: Path) => void): Promise<Route<Req, Res>[]> {
  const banned = stopped(LIMIT)
  await banned.block('ip:127.0.0.1', '1h')
  const options: Record<Path, GuardOptions<Req, Res>> = {
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

export function resetCases<Req, Res>(adapter: Adapter<Req, Res>): void {
  describe('callers that reset their connections', () => {
    it.each(resetsOf(adapter as never).map((reset) => [titleOf(reset), reset] as const))(
      'get no second allowance over %s',
      async (_, reset) => {
        expect(await afterResets(adapter, reset, 200)).toEqual({ exceeded: {}, errors: [] })
      },
      30_000,
    )
  })
}

export function titleOf({ protocol, late }: Reset): string {
  return `${protocol}${late ? ', after something was waited for' : ''}`
}
