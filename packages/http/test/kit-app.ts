import { type Adapter, listening, type Route } from '@sluice/harness/adapters'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { createServer, type IncomingMessage, type ServerResponse, type Server } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { limited, limitNodeRequest, type LimitRequestOptions, type ResponseHead } from '../src/index.js'

const NO_SETTING = 'without a framework there is no setting, and an option for a number'
const LACKS = { 'trusting all proxies': NO_SETTING, 'trusting proxies by address': NO_SETTING } as const

/** Listeners of Node's own server. */
export const nodeAdapter: Adapter<IncomingMessage, ServerResponse> = {
  name: 'Node',
  serve({ routes, proxyTrust, before, onError }) {
    const trustProxy = typeof proxyTrust === 'number' ? proxyTrust : 0
    const handlers = new Map(routes.map((route) => [route.path, handlerOf(route, trustProxy)]))
    const server = createServer((req, res) => {
      const handle = async (): Promise<void> => {
        await before?.()
        await handlers.get(pathOf(req.url))!(req, res)
      }
      handle().catch((error: unknown) => {
        onError(error)
        if (res.headersSent) return void res.destroy()
        res.statusCode = 500
        res.end()
      })
    })
    return listening(server.listen(0, '127.0.0.1'))
  },
  header: (req, name) => req.headers[name]?.toString(),
  method: (req) => req.method!,
  status: (res) => res.statusCode,
  answerDenial: (_req, res, text) => res.setHeader('Content-Type', 'text/plain').end(text),
  lacks: LACKS,
}

function handlerOf({ limits, answer }: Route<IncomingMessage, ServerResponse>, trustProxy: number) {
  const guards = limits.map((limit) => limitNodeRequest({ ...limit, trustProxy }))
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    for (const mayPass of guards) if (!(await mayPass(req, res))) return
    const { status = 200, headers, body } = await answer()
    res.writeHead(status, { ...headers, 'Content-Type': 'text/plain' })
    if (typeof body === 'string') res.end(body)
    else await pipeline(Readable.from(body), res)
  }
}

type Handler = (request: Request, env: HttpBindings) => Response | Promise<Response>

/** Fetch handlers, on Node's server. */
export const fetchAdapter: Adapter<Request, ResponseHead> = {
  name: 'fetch',
  serve({ routes, proxyTrust, before, onError }) {
    const trustProxy = typeof proxyTrust === 'number' ? proxyTrust : 0
    const address = (_request: Request, { incoming }: HttpBindings) => incoming.socket.remoteAddress
    const handlers = new Map<string, Handler>()
    for (const { path, limits, answer } of routes) {
      let handler: Handler = async () => {
        const { status = 200, headers, body } = await answer()
        const text = typeof body === 'string' ? body : (Readable.toWeb(Readable.from(body)) as ReadableStream)
        return new Response(text, { status, headers: { ...headers, 'Content-Type': 'text/plain' } })
      }
      for (const limit of limits.toReversed())
        handler = limited(handler, { ...(limit as LimitRequestOptions), trustProxy, address })
      handlers.set(path, handler)
    }
    const fetch: Handler = async (request, env) => {
      try {
        await before?.()
        return await handlers.get(pathOf(new URL(request.url).pathname))!(request, env)
      } catch (error) {
        onError(error)
        return new Response('', { status: 500 })
      }
    }
    return listening((createAdaptorServer({ fetch: fetch as never }) as Server).listen(0, '127.0.0.1'))
  },
  header: (request, name) => request.headers.get(name) ?? undefined,
  method: (request) => request.method,
  status: (response) => response.status,
  answerDenial: (_request, response, text) => {
    response.headers.set('Content-Type', 'text/plain')
    return new Response(text, response)
  },
  lacks: {
    ...LACKS,
    'responses to errors': 'errors are thrown past the limit, and what answers them is beyond it',
    'ends of large responses': 'a runtime reads a text at once and sends it later',
    'connections without an address': 'nothing in a request shows that its connection was reset',
    'addresses of connections': 'the platform may have read the address in a header',
    'hang-ups of pipelined requests': 'the server for fetch handlers aborts only the first of them',
  },
}

function pathOf(url = '/'): string {
  return url.split('?')[0]!
}
