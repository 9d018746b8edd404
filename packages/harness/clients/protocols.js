// The clients of other protocols, each against its own kind of refusal, which states 5 s: how often it sends, and what its caller sees.
import * as grpc from '@grpc/grpc-js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createTRPCClient, httpBatchLink, httpSubscriptionLink, retryLink } from '@trpc/client'
import { EventSource as OfNpm } from 'eventsource'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import * as http2 from 'node:http2'
import { setTimeout as later } from 'node:timers/promises'
import { EventSource as OfUndici } from 'undici'
import { listening } from '../../../scripts/verify/started.js'

const SECONDS = 25
const REFUSED = { 'retry-after': '5', 'content-type': 'application/problem+json' }
const PROBLEM = JSON.stringify({ type: 'about:blank', title: 'Too Many Requests', status: 429 })
const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

/** The rows, all at once. */
export async function PROTOCOLS() {
  const rows = await Promise.all([...GRPC, ...EVENTS, ...MCP, ...TRPC].map((each) => row(...each)))
  return [['client', 'refused with', 'version', 'requests, first wait', 'its caller sees'], ...rows]
}

async function row(client, from, refusal, call) {
  const at = []
  const closing = []
  const note = () => at.push(performance.now())
  const thrown = (error) =>
    `throws ${error.constructor.name}${error.code ? `, code ${error.code}` : `: ${short(error)}`}`
  const ended = call(note, (close) => closing.push(close)).then(String, thrown)
  const seen = await Promise.race([ended, later(SECONDS * 1000, 'nothing yet')])
  for (const close of closing) close()
  const wait = at.length > 1 ? `, ${((at[1] - at[0]) / 1000).toFixed(1)} s` : ''
  return [client, refusal, dependencies[from], `${at.length}${wait}`, seen]
}

function short(error) {
  return String(error.message).split('\n')[0].replaceAll('|', '/').slice(0, 90)
}

/** A server of a row on loopback, as a URL. */
async function serve(onEnd, answer, server = createServer()) {
  const { origin, stop } = await listening(server.on('request', answer))
  onEnd(stop)
  return origin
}

function refuse(res, status = 429) {
  res.writeHead(status, REFUSED).end(PROBLEM)
}

const same = (value) => value
// prettier-ignore
const METHOD = { path: '/calls.Calls/Get', requestStream: false, responseStream: false, requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same }
/** google.rpc.Status with a RetryInfo of 5 s. */
// prettier-ignore
const RETRY_INFO = Buffer.from('080812036c6f771a300a28747970652e676f6f676c65617069732e636f6d2f676f6f676c652e7270632e5265747279496e666f12040a020805', 'hex')
// prettier-ignore
const policyFor = (code) => ({ 'grpc.service_config': JSON.stringify({ methodConfig: [{ name: [{}], retryPolicy: { maxAttempts: 4, initialBackoff: '1s', maxBackoff: '10s', backoffMultiplier: 2, retryableStatusCodes: [code] } }] }) })

function overGrpc(options, trailers) {
  return async (note, onEnd) => {
    const server = new grpc.Server()
    const get = (_, reply) => {
      note()
      const metadata = new grpc.Metadata()
      for (const [name, value] of Object.entries(trailers)) metadata.set(name, value)
      reply({ code: grpc.status.RESOURCE_EXHAUSTED, details: 'slow down', metadata })
    }
    server.addService({ Get: METHOD }, { Get: get })
    const port = await new Promise((resolve) =>
      server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_, bound) => resolve(bound)),
    )
    onEnd(() => server.forceShutdown())
    return calling(`127.0.0.1:${port}`, options, onEnd)
  }
}

function overGateway(options) {
  return async (note, onEnd) => {
    const url = await serve(onEnd, (_, res) => (note(), refuse(res)), http2.createServer())
    return calling(new URL(url).host, options, onEnd)
  }
}

function calling(address, options, onEnd) {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), options)
  onEnd(() => client.close())
  return new Promise((resolve) => {
    const said = ({ code, details }) => resolve(`${grpc.status[code]}: ${details}`)
    client.makeUnaryRequest(METHOD.path, same, same, Buffer.alloc(0), said)
  })
}

// prettier-ignore
const GRPC = [
  ['grpc-js', '@grpc/grpc-js', 'RESOURCE_EXHAUSTED', overGrpc({}, {})],
  ['grpc-js, a retryPolicy that names it', '@grpc/grpc-js', 'RESOURCE_EXHAUSTED', overGrpc(policyFor('RESOURCE_EXHAUSTED'), {})],
  ['grpc-js, a retryPolicy that names it', '@grpc/grpc-js', 'the same with RetryInfo of 5 s', overGrpc(policyFor('RESOURCE_EXHAUSTED'), { 'grpc-status-details-bin': RETRY_INFO })],
  ['grpc-js, a retryPolicy that names it', '@grpc/grpc-js', 'the same with `grpc-retry-pushback-ms: 5000`', overGrpc(policyFor('RESOURCE_EXHAUSTED'), { 'grpc-retry-pushback-ms': '5000' })],
  ['grpc-js', '@grpc/grpc-js', 'HTTP 429 of a gateway', overGateway({})],
  ['grpc-js, a retryPolicy for UNAVAILABLE', '@grpc/grpc-js', 'HTTP 429 of a gateway', overGateway(policyFor('UNAVAILABLE'))],
]

/** A stream that is refused from its first or its second connection on. */
function events(EventSource, allowed, status = 429) {
  return async (note, onEnd) => {
    let n = 0
    const url = await serve(onEnd, (_, res) => {
      note()
      if (n++ >= allowed) return refuse(res, status)
      res.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 2000\ndata: hello\n\n')
    })
    const source = new EventSource(url)
    onEnd(() => source.close())
    return new Promise((resolve) => {
      const look = () => source.readyState === 2 && resolve('`error`, and it is closed for good')
      source.addEventListener('error', () => setTimeout(look))
    })
  }
}

// prettier-ignore
const EVENTS = [['EventSource (eventsource)', 'eventsource', OfNpm], ['EventSource (undici)', 'undici', OfUndici]].flatMap(([name, from, EventSource]) => [
  [name, from, '429 at the first connection', events(EventSource, 0)],
  [name, from, '503 at the first connection', events(EventSource, 0, 503)],
  [name, from, '429 when it connects again, `retry: 2000`', events(EventSource, 1)],
])

// prettier-ignore
const HANDSHAKE = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }

/** A server of MCP that answers its handshake, and a call of a tool or the stream of the server with a refusal. */
function mcp(refusing, answer) {
  return async (note, onEnd) => {
    const url = await serve(onEnd, async (req, res) => {
      const sent = Buffer.concat(await req.toArray()).toString()
      const body = sent === '' ? { method: req.method } : JSON.parse(sent)
      if (body.method === refusing) return (note(), answer(res, body))
      if (body.id === undefined) return res.writeHead(body.method === 'GET' ? 405 : 202).end()
      asJson({ result: body.method === 'initialize' ? HANDSHAKE : {} })(res, body)
    })
    const client = new Client({ name: 'c', version: '1' })
    const failed = new Promise((resolve) => {
      client.onerror = (error) => resolve(`\`onerror\`: ${short(error)}`)
    })
    onEnd(() => void client.close().catch(() => {}))
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    if (refusing === 'GET') return failed
    const result = await client.callTool({ name: 'search' })
    return result.isError ? `a result with \`isError\`, which a model reads` : 'a result'
  }
}

function asJson(body) {
  return (res, { id }) => {
    res.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
  }
}

// prettier-ignore
const MCP = [
  ['MCP', 'HTTP 429 to the handshake', 'initialize', (res) => refuse(res)],
  ['MCP', 'HTTP 429 to a call of a tool', 'tools/call', (res) => refuse(res)],
  ['MCP', 'HTTP 429 to the stream of the server', 'GET', (res) => refuse(res)],
  ['MCP', 'an error of JSON-RPC', 'tools/call', asJson({ error: { code: -32000, message: 'slow down', data: { retryAfter: 5 } } })],
  ['MCP', 'a result with `isError`', 'tools/call', asJson({ result: { isError: true, content: [{ type: 'text', text: 'try again in 5 s' }] } })],
].map(([client, refusal, method, answer]) => [client, '@modelcontextprotocol/sdk', refusal, mcp(method, answer)])

/** tRPC's own refusal, and the problem details of a limiter in front of it. */
// prettier-ignore
const OF_TRPC = '[{"error":{"message":"slow down","code":-32029,"data":{"code":"TOO_MANY_REQUESTS","httpStatus":429,"path":"get"}}}]'

function trpc(links, answer, subscribes = false) {
  return async (note, onEnd) => {
    const url = await serve(onEnd, (_, res) => (note(), answer(res)))
    const client = createTRPCClient({ links: links(url) })
    const said = (error) =>
      `${error.name}: ${short(error)}; data: ${error.data?.code ?? 'none'}, status ${error.meta?.response?.status}`
    const asked = () => client.get.query().then(() => 'a result')
    if (!subscribes) return asked().catch((error) => `throws ${said(error)}`)
    return new Promise((resolve) => {
      const onError = (error) => resolve(`\`onError\`: ${short(error)}`)
      const subscription = client.events.subscribe(undefined, { onError })
      onEnd(() => subscription.unsubscribe())
    })
  }
}

const batch = (url) => [httpBatchLink({ url })]
const again = (url) => [retryLink({ retry: ({ attempts }) => attempts <= 3 }), ...batch(url)]
const streams = (url) => [httpSubscriptionLink({ url, EventSource: OfNpm })]
const ownRefusal = (res) =>
  res.writeHead(429, { ...REFUSED, 'content-type': 'application/json' }).end(OF_TRPC)
// prettier-ignore
const TRPC = [
  ['tRPC httpBatchLink', 'TOO_MANY_REQUESTS of a procedure', batch, ownRefusal],
  ['tRPC httpBatchLink', '429 with problem details', batch, (res) => refuse(res)],
  ['tRPC retryLink, `attempts <= 3`', 'TOO_MANY_REQUESTS of a procedure', again, ownRefusal],
  ['tRPC httpSubscriptionLink', '429 to its stream', streams, (res) => refuse(res), true],
].map(([client, refusal, links, answer, subscribes]) => [client, '@trpc/client', refusal, trpc(links, answer, subscribes)])
