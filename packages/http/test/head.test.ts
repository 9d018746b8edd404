import { once } from 'node:events'
import {
  createServer,
  get,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http'
import { connect, createServer as createHttp2Server, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { limitedListener } from '../src/index.js'

/** The head of an upstream, once for all responses: nothing may be written into it. */
const HEAD = Object.freeze({
  'X-RateLimit-Limit': '5',
  'X-RateLimit-Reset': '9',
  'Set-Cookie': ['a=1', 'b=2'],
})

const PAIRS: [string, string][] = [
  ['X-RateLimit-Limit', '5'],
  ['x-other', 'yes'],
  ['Set-Cookie', 'a=1'],
  ['Set-Cookie', 'b=2'],
]
const FLAT = PAIRS.flat()

const WAYS: [string, (res: ServerResponse, status: number) => unknown][] = [
  ['an object', (res, status) => res.writeHead(status, { ...HEAD, 'x-other': 'yes' })],
  ['an object that stays as it is', (res, status) => res.setHeader('x-other', 'yes').writeHead(status, HEAD)],
  ['a message and an object', (res, status) => res.writeHead(status, 'Fine', { ...HEAD, 'x-other': 'yes' })],
  ['names and values in turn', (res, status) => res.writeHead(status, FLAT)],
  ['pairs of names and values', (res, status) => res.writeHead(status, PAIRS)],
  [
    'headers that are set before',
    (res, status) => {
      for (const [name, value] of Object.entries({ ...HEAD, 'x-other': 'yes' })) res.setHeader(name, value)
      res.writeHead(status)
    },
  ],
  [
    'headers that are added',
    (res, status) => {
      res.appendHeader('X-RateLimit-Limit', '5').appendHeader('x-other', 'yes')
      res.setHeader('Set-Cookie', HEAD['Set-Cookie']).statusCode = status
    },
  ],
]

describe('the head of an upstream that is passed on by a listener of Node', () => {
  it.each(WAYS)('has the headers of the gateway in place of its own, given as %s', async (_, write) => {
    const { statusCode, headers } = await replyOf((_req, res) => (write(res, 200), res.end('passed')))
    expect([statusCode, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual([
      200,
      '7',
      '6',
    ])
    expect([headers['x-other'], headers['set-cookie']]).toEqual(['yes', ['a=1', 'b=2']])
    expect(Number(headers['x-ratelimit-reset'])).toBeGreaterThan(1e9)
  })

  it.each(WAYS)('stays as it is if it denies, given as %s', async (_, write) => {
    const { headers } = await replyOf((_req, res) => (write(res, 429), res.end('denied')))
    expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['5', undefined])
  })

  it.each<[string, OutgoingHttpHeaders | [string, string][]]>([
    ['an object', { 'x-ratelimit-limit': '5' }],
    ['pairs', [['x-ratelimit-limit', '5']]],
  ])('is that of the gateway over HTTP/2 too, given as %s', async (_, head) => {
    const server = createHttp2Server(limited((_req, res) => res.writeHead(200, head).end()) as never)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const [headers] = (await once(client.request({ ':path': '/' }).end(), 'response')) as [
      IncomingHttpHeaders,
    ]
    client.destroy()
    server.close()
    expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['7', '6'])
  })

  it('is not waited for where a response is none of Node, as in a test of a handler', async () => {
    const set: Record<string, string> = {}
    const res = { headersSent: false, setHeader: (name: string, value: string) => (set[name] = value) }
    await limited(() => {})({ socket: {}, headers: {} } as never, res as never)
    expect(set).toMatchObject({ 'X-RateLimit-Limit': '7' })
  })
})

function limited(listener: (req: IncomingMessage, res: ServerResponse) => unknown) {
  return limitedListener(listener, { limit: 7, window: '1m', key: () => 'k' })
}

async function replyOf(
  listener: (req: IncomingMessage, res: ServerResponse) => unknown,
): Promise<IncomingMessage> {
  const server = createServer(limited(listener))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const [res] = (await once(
    get({ port: (server.address() as AddressInfo).port, agent: false }),
    'response',
  )) as [IncomingMessage]
  res.resume()
  await once(res, 'end')
  server.close()
  return res
}
