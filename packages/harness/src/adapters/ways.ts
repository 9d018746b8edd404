import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, createServer, request, type RequestOptions } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Duplex, duplexPair } from 'node:stream'
import type { Feature, Served } from './adapter.js'
import { listenerOf, secured, serveOver } from './protocols.js'

/*
 * Ways by which honest requests reach an application without an address, or with one that the connection to its own server
 * does not have. They are GET and POST in turn: where the body is read before the limits, Node has destroyed the request.
 */

export interface Way {
  readonly name: string
  /** The key that its requests are counted under. */
  readonly key: string
  /** The code of the warning that is reported, if any. */
  readonly warning?: string
  readonly feature?: Feature
  /** Whether the application trusts the proxy that the requests come through. */
  readonly trusted?: boolean
  open(app: Served): Promise<Requests>
}

export interface Requests {
  /** Sends the nth request and resolves to the status of its response. */
  send(n: number): Promise<number>
  close(): Promise<unknown>
}

const UNKNOWN = { key: 'ip:unknown', warning: 'ADDRESS_UNKNOWN' } as const
const LOCAL = 'ip:127.0.0.1'
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
  { name: 'a Unix socket', ...UNKNOWN, open: (app) => overUnixSocket(createServer(listenerOf(app))) },
  {
    name: 'a trusted proxy on a Unix socket',
    key: `ip:${CLIENT}`,
    trusted: true,
    open: (app) => overUnixSocket(createServer(listenerOf(app)), { 'X-Forwarded-For': CLIENT }),
  },
  {
    name: 'a Unix socket that is handed to a server on TCP',
    ...UNKNOWN,
    open: ({ server }) => overUnixSocket(inFrontOf(server)),
  },
  {
    name: 'a stream that is handed to a server on TCP',
    ...UNKNOWN,
    open: ({ server }) => over({}, () => streamTo(server)),
  },
  { name: 'TLS over a stream that is handed to a server on TCP', ...UNKNOWN, open: overSecuredStream },
  { name: 'a TCP server that hands its sockets over', key: LOCAL, open: overTcpInFront },
  { name: 'supertest', key: LOCAL, open: bySupertest },
  ...lambdaEvents().flatMap(({ name, events, ...way }): Way[] => [
    { name: `serverless-http, from ${name}`, ...way, open: (app) => byServerlessHttp(app, events) },
    { name: `serverless-express, from ${name}`, ...way, open: (app) => byServerlessExpress(app, events) },
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
async function overUnixSocket(server: Server, headers = {}): Promise<Requests> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const socketPath = join(folder, 'http.sock')
  await once(server.listen(socketPath), 'listening')
  const { send, close } = await over({ socketPath, headers })
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

/** The events of AWS, as far as they are read, and how their requests are to be counted. */
function lambdaEvents(): readonly (Omit<Way, 'open'> & { readonly events: LambdaEvents })[] {
  const sent = (n: number, forwarded: string | undefined) => ({
    headers: {
      host: 'localhost',
      'content-type': 'text/plain',
      ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
    },
    body: methodOf(n) === 'POST' ? BODY : '',
    isBase64Encoded: false,
  })
  const version1 = (requestContext: object, forwarded?: string) => (n: number) => ({
    ...sent(n, forwarded),
    httpMethod: methodOf(n),
    path: '/',
    resource: '/',
    queryStringParameters: {},
    requestContext,
  })
  const version2 = (sourceIp?: string, forwarded?: string) => (n: number) => ({
    ...sent(n, forwarded),
    version: '2.0',
    rawPath: '/',
    rawQueryString: '',
    requestContext: { http: { method: methodOf(n), sourceIp } },
  })
  const [client, edge] = [`ip:${CLIENT}`, '130.176.0.1']
  const balanced = version1({ elb: {} }, `203.0.113.9, ${CLIENT}`)
  const identity = { identity: { sourceIp: CLIENT } }
  return [
    { name: 'a load balancer', ...UNKNOWN, events: balanced },
    { name: 'a load balancer that is trusted', key: client, trusted: true, events: balanced },
    {
      name: 'a load balancer that forwards ports and is trusted',
      key: client,
      trusted: true,
      events: version1({ elb: {} }, `203.0.113.9, ${CLIENT}:50123`),
    },
    { name: 'API Gateway, version 1', key: client, events: version1(identity, CLIENT) },
    {
      name: 'API Gateway, version 1, optimized for the edge',
      key: client,
      events: version1(identity, `${CLIENT}, ${edge}`),
    },
    { name: 'API Gateway, version 1, without an address', ...UNKNOWN, events: version1({ identity: {} }) },
    { name: 'API Gateway, version 2', key: client, events: version2(CLIENT, CLIENT) },
    {
      name: 'API Gateway, version 2, that is trusted',
      key: client,
      trusted: true,
      events: version2(CLIENT, CLIENT),
    },
    {
      name: 'API Gateway, version 2, behind a CDN',
      key: `ip:${edge}`,
      warning: 'FORWARDED_NOT_TRUSTED',
      feature: 'addresses of connections',
      events: version2(edge, `${CLIENT}, ${edge}`),
    },
    { name: 'API Gateway, version 2, without an address', ...UNKNOWN, events: version2() },
  ]
}
