import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, createServer, request, type RequestOptions } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Duplex, duplexPair } from 'node:stream'
import type { Served } from './adapter.js'
import { listenerOf, secured, serveOver } from './protocols.js'

/*
 * Ways by which honest requests reach an application without an address, or with one that the connection to its own server
 * does not have. They are GET and POST in turn: where the body is read before the limits, Node has destroyed the request.
 */

export interface Way {
  readonly name: string
  /** The key that its requests are counted under. */
  readonly key: string
  /** Whether the application trusts the proxy that the requests come through. */
  readonly trusted?: true
  open(app: Served): Promise<Requests>
}

export interface Requests {
  /** Sends the nth request and resolves to the status of its response. */
  send(n: number): Promise<number>
  close(): Promise<unknown>
}

const [UNKNOWN, LOCAL] = ['ip:unknown', 'ip:127.0.0.1'] as const
/** The requests that a proxy in front has seen. */
const CLIENT = '198.51.100.7'

/** Ways of each adapter. */
export const WAYS: readonly Way[] = [
  { name: 'a connection that stays', key: LOCAL, open: ({ server }) => over({ port: portOf(server) }) },
  {
    name: 'a trusted proxy',
    key: `ip:${CLIENT}`,
    trusted: true,
    open: ({ server }) => over({ port: portOf(server), headers: { 'X-Forwarded-For': CLIENT } }),
  },
  { name: 'a Unix socket', key: UNKNOWN, open: (app) => overUnixSocket(createServer(listenerOf(app))) },
  {
    name: 'a Unix socket that is handed to a server on TCP',
    key: UNKNOWN,
    open: ({ server }) => overUnixSocket(inFrontOf(server)),
  },
  {
    name: 'a stream that is handed to a server on TCP',
    key: UNKNOWN,
    open: ({ server }) => over({}, () => streamTo(server)),
  },
  { name: 'TLS over a stream that is handed to a server on TCP', key: UNKNOWN, open: overSecuredStream },
  { name: 'a TCP server that hands its sockets over', key: LOCAL, open: overTcpInFront },
  { name: 'supertest', key: LOCAL, open: bySupertest },
  ...Object.entries(lambdaEvents()).flatMap(([source, events]): Way[] => [
    { name: `serverless-http, from ${source}`, key: UNKNOWN, open: (app) => byServerlessHttp(app, events) },
    {
      name: `serverless-express, from ${source}`,
      key: UNKNOWN,
      open: (app) => byServerlessExpress(app, events),
    },
  ]),
]

const methodOf = (n: number): 'GET' | 'POST' => (n % 2 === 0 ? 'GET' : 'POST')
const BODY = 'body'

/** Sends requests by HTTP over connections that are kept. `connect`, if it is given, makes these. */
async function over(options: RequestOptions, connect?: () => Duplex): Promise<Requests> {
  const agent = new Agent({ keepAlive: true })
  if (connect) Object.assign(agent, { createConnection: connect })
  return {
    async send(n) {
      const method = methodOf(n)
      // Express never answers a request that is dropped.
      const signal = AbortSignal.timeout(10_000)
      const sent = request({ host: '127.0.0.1', agent, ...options, method, signal })
      sent.setHeader('Content-Type', 'text/plain')
      const [response] = await once(sent.end(method === 'POST' ? BODY : undefined), 'response')
      await once(response.resume(), 'end')
      return response.statusCode
    },
    close: async () => agent.destroy(),
  }
}

/** Sends requests over a socket in the file system, on which a caller has no address. */
async function overUnixSocket(server: Server): Promise<Requests> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const socketPath = join(folder, 'http.sock')
  await once(server.listen(socketPath), 'listening')
  const { send, close } = await over({ socketPath })
  return {
    send,
    close: () =>
      close()
        .then(() => closed(server))
        .then(() => rmSync(folder, { recursive: true })),
  }
}

/** Sends requests over a TCP server in front, which hands its connections to the application's. */
async function overTcpInFront({ server }: Served): Promise<Requests> {
  const front = inFrontOf(server)
  await once(front.listen(0, '127.0.0.1'), 'listening')
  const { send, close } = await over({ port: portOf(front) })
  return { send, close: () => close().then(() => closed(front)) }
}

/** Sends requests over TLS on a stream within this process, which has no address. */
async function overSecuredStream(app: Served): Promise<Requests> {
  const { server, close } = await serveOver('HTTP/1.1 over TLS', app)
  const requests = await over({}, () => secured(streamTo(server)))
  return { send: requests.send, close: () => requests.close().then(close) }
}

const inFrontOf = (server: Server): Server => createTcpServer((socket) => server.emit('connection', socket))

/** The client's end of a stream whose other end `server` takes for a connection. */
function streamTo(server: Server): Duplex {
  const [client, accepted] = duplexPair()
  server.emit('connection', accepted)
  const nothing = () => {}
  // The method that an agent calls to keep a connection.
  return Object.assign(client, { setKeepAlive: nothing, setTimeout: nothing, ref: nothing, unref: nothing })
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** Ends a server, and resolves when that is done. */
async function closed(server: Server): Promise<void> {
  const over = once(server, 'close')
  server.close()
  await over
}

/** Loads a package that has no types of its own for what is called here. */
const load = createRequire(join(process.cwd(), 'package.json'))

/** Sends requests by supertest. */
async function bySupertest({ server }: Served): Promise<Requests> {
  const agent = load('supertest')(server)
  const send = async (n: number) =>
    (methodOf(n) === 'GET' ? await agent.get('/') : await agent.post('/').type('text').send(BODY)).status
  return { send, close: async () => {} }
}

/** Sends requests as events of AWS Lambda, by serverless-http. */
async function byServerlessHttp(app: Served, events: LambdaEvents): Promise<Requests> {
  const handle = load('serverless-http')(app.server)
  return { send: async (n) => (await handle(events(n), {})).statusCode, close: async () => {} }
}

/** Sends requests as events of AWS Lambda, by serverless-express. */
async function byServerlessExpress(app: Served, events: LambdaEvents): Promise<Requests> {
  const handle = load('@codegenie/serverless-express')({ app: { handle: listenerOf(app) } })
  return { send: async (n) => (await handle(events(n), {}, () => {})).statusCode, close: async () => {} }
}

type LambdaEvents = (n: number) => object

/** The events of AWS for the nth request, as far as they are read. */
function lambdaEvents(): Readonly<Record<string, LambdaEvents>> {
  const sent = (n: number) => ({
    headers: { host: 'localhost', 'content-type': 'text/plain' },
    body: methodOf(n) === 'POST' ? BODY : '',
    isBase64Encoded: false,
  })
  const version1 = (n: number) => ({
    ...sent(n),
    httpMethod: methodOf(n),
    path: '/',
    queryStringParameters: {},
  })
  return {
    'a load balancer': (n) => ({ ...version1(n), requestContext: { elb: {} } }),
    'API Gateway, version 1': (n) => ({ ...version1(n), resource: '/', requestContext: { identity: {} } }),
    'API Gateway, version 2': (n) => ({
      ...sent(n),
      version: '2.0',
      rawPath: '/',
      rawQueryString: '',
      requestContext: { http: { method: methodOf(n) } },
    }),
  }
}
