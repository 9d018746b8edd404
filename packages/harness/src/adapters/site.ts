import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { RequestLimitOptions } from '@sluice/http'
import type { Adapter, App, Route, Served } from './adapter.js'
import { type Reply, send, type Sent } from './client.js'

/** Serves one limited route, and `/free` beside it, until the end of the test. */
export type Serve<Req, Res> = (
  limits: readonly RequestLimitOptions<Req, Res>[],
  site?: Partial<Pick<Route<Req, Res>, 'path' | 'answer'> & Pick<App<Req, Res>, 'proxyTrust' | 'before'>>,
) => Promise<Site>

/** Returns the function by which tests start an application of an adapter. What they start is closed after each of them. */
export function siteServer<Req, Res>(adapter: Adapter<Req, Res>): Serve<Req, Res> {
  const open: Served[] = []
  afterEach(() => Promise.all(open.splice(0).map((served) => served.close())))

  return async function serve(limits, { path = '/', answer = served, proxyTrust = 'none', before } = {}) {
    const counts = { handled: 0 }
    const errors: unknown[] = []
    const counted: Route<Req, Res>['answer'] = () => {
      counts.handled++
      return answer()
    }
    const routes = [
      { path, limits, answer: counted },
      { path: '/free', limits: [], answer: served },
    ]
    const waits = before && { before }
    const app = await adapter.serve({
      routes,
      proxyTrust,
      ...waits,
      onError: (error) => void errors.push(error),
    })
    open.push(app)
    return new Site(app, counts, errors)
  }
}

const served = () => ({ body: 'served' })

/** A server under test, as its clients and its operator see it. */
export class Site {
  readonly #served: Served
  readonly #counts: { readonly handled: number }
  /** The errors that have reached the framework's own handler. */
  readonly errors: readonly unknown[]

  constructor(served: Served, counts: { readonly handled: number }, errors: readonly unknown[]) {
    this.#served = served
    this.#counts = counts
    this.errors = errors
  }

  /** How many requests have reached the handler of the limited route. */
  get handled(): number {
    return this.#counts.handled
  }

  get port(): number {
    return (this.#served.server.address() as AddressInfo).port
  }

  send(sent: Sent = {}): Promise<Reply> {
    return send(this.port, sent)
  }

  /** Sends requests one after another. Returns their statuses. */
  async statuses(requests: readonly Sent[]): Promise<number[]> {
    const statuses: number[] = []
    for (const sent of requests) statuses.push((await this.send(sent)).status)
    return statuses
  }

  /** Resolves when the response to the next request is over on the server, sent or not, and its listeners have run. */
  async nextClosed(): Promise<void> {
    const [, res] = (await once(this.#served.server, 'request')) as [unknown, ServerResponse]
    if (!res.closed) await once(res, 'close')
    await turn()
  }

  /** Resolves when all that was ready to run on the server has run. */
  async idle(): Promise<void> {
    await this.send({ path: '/free' })
    await turn()
  }
}
