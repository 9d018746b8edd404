import { createAdaptorServer, upgradeWebSocket } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createLimiter, type Limiter, memoryStore, slidingLog, type Store } from '@sluice/core'
import { Hono } from 'hono'
import type { WSContext, WSEvents } from 'hono/ws'
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import { limitMessages, type Message, type MessageLimitOptions } from '../src/index.js'

let server: Server
let clients: WebSocket[]

beforeEach(() => void (clients = []))

afterEach(async () => {
  for (const client of clients) client.terminate()
  server?.close()
})

describe('messages of a WebSocket', () => {
  it('reach the handler up to the limit; the next closes the connection', async () => {
    const url = await serve({ limit: 2, window: '1m', connInfo: getConnInfo })
    const { client, received } = await connect(url)
    for (const text of ['a', 'b', 'c']) client.send(text)
    const [code, reason] = (await once(client, 'close')) as [number, Buffer]
    expect([received, code, String(reason)]).toEqual([['a', 'b'], 1008, 'Too Many Requests'])
  })

  it('are counted over all connections of an address', async () => {
    const url = await serve({ limit: 2, window: '1m', connInfo: getConnInfo })
    const [one, two] = [await connect(url), await connect(url)]
    for (const { client } of [one, two]) {
      client.send('a')
      await once(client, 'message')
    }
    two.client.send('b')
    expect((await once(two.client, 'close'))[0]).toBe(1008)
  })

  it('are counted by the address that was known when the connection was opened, which Bun forgets then', async () => {
    const addresses = ['192.0.2.1']
    const limiter = stopped(9)
    const keys: string[] = []
    limiter.on('decision', ({ key }) => void keys.push(key))
    const connInfo = () => ({ remote: { address: addresses.pop() } })
    const { client, received } = await connect(await serve({ limiter, connInfo }))
    for (const text of ['a', 'b']) client.send(text)
    while (received.length < 2) await once(client, 'message')
    expect(keys).toEqual(['ip:192.0.2.1', 'ip:192.0.2.1'])
  })

  it('beyond the limit are left to onDenied, which gets message and decision', async () => {
    const onDenied: MessageLimitOptions['onDenied'] = ({ event, ws }, _same, { limit }) =>
      ws.send(`${event.data} is over ${limit}`)
    const url = await serve({ limiter: stopped(1), key: byHeader, onDenied })
    const { client, received } = await connect(url)
    for (const text of ['a', 'b', 'c']) client.send(text)
    while (received.length < 3) await once(client, 'message')
    expect(received).toEqual(['a', 'b is over 1', 'c is over 1'])
  })

  it('keep their order while a store is asked, and every one is counted', async () => {
    const waits = [3, 1, 2]
    const limiter = stopped(2)
    const key = async () => {
      for (let turns = waits.shift()!; turns > 0; turns--) await new Promise(setImmediate)
      return 'k'
    }
    const onDenied = ({ ws }: Message) => ws.send('denied')
    const { client, received } = await connect(await serve({ limiter, key, onDenied }))
    for (const text of ['a', 'b', 'c']) client.send(text)
    while (received.length < 3) await once(client, 'message')
    // The first message waited longest and was counted last.
    expect(received).toEqual(['denied', 'b', 'c'])
  })

  it('keep their order if one of them fails', async () => {
    const waits = [3, 1, 2]
    const key = async () => {
      const turns = waits.shift()!
      for (let i = 0; i < turns; i++) await new Promise(setImmediate)
      if (turns === 1) throw new Error('no database')
      return 'k'
    }
    const handled: unknown[] = []
    const limiter = stopped(9)
    limiter.on('warning', () => void handled.push('failed'))
    const { client } = await connect(await serve({ limiter, key }, ({ data }) => void handled.push(data)))
    for (const text of ['a', 'b', 'c']) client.send(text)
    await once(client, 'close')
    expect(handled).toEqual(['a', 'failed', 'c'])
  })

  it('are refused while an earlier one is handled, also if their key is async', async () => {
    const onMessage = jest.fn((): unknown => new Promise<never>(() => {}))
    const url = await serve({ limit: 1, window: '1m', key: async () => 'k' }, onMessage)
    const { client } = await connect(url)
    for (const text of ['a', 'b', 'c']) client.send(text)
    expect((await once(client, 'close'))[0]).toBe(1008)
    expect(onMessage).toHaveBeenCalledTimes(1)
  })

  it('of a denied address close the connection uncounted', async () => {
    const limiter = stopped(2)
    const url = await serve({ limiter, key: () => 'k', connInfo: getConnInfo, deny: ['127.0.0.1'] })
    const { client } = await connect(url)
    client.send('a')
    const [code, reason] = (await once(client, 'close')) as [number, Buffer]
    expect([code, String(reason), (await limiter.peek('k')).remaining]).toEqual([1008, 'Forbidden', 2])
  })

  it.each<[string, () => Promise<string>, WSEvents['onMessage']]>([
    ['counted', async () => fail(), echo],
    ['handled', async () => 'k', fail],
    ['handled by an async handler', async () => 'k', async () => fail()],
  ])('that cannot be %s close the connection, and the error is a warning', async (_, key, onMessage) => {
    const limiter = stopped(2)
    const warnings: unknown[] = []
    limiter.on('warning', (warning) => void warnings.push(warning))
    const { client } = await connect(await serve({ limiter, key }, onMessage))
    client.send('a')
    expect((await once(client, 'close'))[0]).toBe(1011)
    const message = 'a message failed, and its connection was closed: Error: no database'
    expect(warnings).toEqual([{ type: 'warning', limiter: limiter.name, code: 'MESSAGE_FAILED', message }])
  })
})

describe('messages that are counted at once', () => {
  it.each<[string, MessageLimitOptions['onDenied'] & {}, WSEvents['onMessage']]>([
    ['an onDenied rejects', async () => fail(), echo],
    ['an onMessage rejects', () => {}, async () => fail()],
  ])('close the connection where %s, and the error is a warning', async (what, onDenied, onMessage) => {
    const limiter = stopped(1)
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => void warnings.push(code))
    const cost = () => (what.startsWith('an onDenied') ? 2 : 1)
    const { client } = await connect(await serve({ limiter, key: () => 'k', cost, onDenied }, onMessage))
    client.send('a')
    expect((await once(client, 'close'))[0]).toBe(1011)
    expect(warnings).toEqual(['MESSAGE_FAILED'])
  })

  it('and denied have an id, which is asked for before onDenied', async () => {
    const asked: string[] = []
    const denialId = ({ key }: { key: string }) => `id-${asked.push(key)}`
    const onDenied = ({ ws }: Message) => ws.send(`denied ${asked.join()}`)
    const url = await serve({ limiter: stopped(1), key: () => 'k', cost: () => 2, denialId, onDenied })
    const { client, received } = await connect(url)
    client.send('a')
    await once(client, 'message')
    expect(received).toEqual(['denied k'])
  })
})

it.each([
  ['waits for its decision', async () => 'k'],
  ['does not wait', () => 'k'],
])('a message that %s comes before the end of its connection', async (_, key) => {
  const heard: string[] = []
  let events: WSEvents = {}
  let end!: () => void
  const ended = new Promise<void>((resolve) => (end = resolve))
  const onClose = (): void => {
    heard.push('close')
    end()
  }
  const application = { onMessage: () => void heard.push('message'), onClose }
  const limit = limitMessages({ limiter: stopped(2), key })
  const app = new Hono().get('/', async (c) => {
    events = await limit(() => application)(c)
    return c.text('')
  })
  await app.request('/')
  const ws = {} as WSContext
  events.onMessage!(new MessageEvent('message', { data: 'a' }), ws)
  events.onClose!({} as Parameters<WSEvents['onClose'] & {}>[0], ws)
  await ended
  expect(heard).toEqual(['message', 'close'])
})

describe('limitMessages', () => {
  it.each<[object, string]>([
    [{ limit: 1, window: '1m' }, 'connInfo is needed for addresses'],
    [{ limit: 1, window: '1m', key: () => 'k', deny: ['10.0.0.0/8'] }, 'connInfo is needed for addresses'],
    [
      { limit: 1, window: '1m', key: () => 'k', maxBuffered: -1 },
      'maxBuffered must be a whole number from 0 to 1073741824, got -1',
    ],
    [{ limit: 1, window: '1m', key: () => 'k', headers: 'ietf' }, "there is no option 'headers'"],
    [
      { limit: 1, window: '1m', key: () => 'k', windows: 5 },
      "there is no option 'windows' of limitMessages: did you mean 'window'?",
    ],
  ])('refuses %j', (options, message) => {
    expect(() => limitMessages(options as MessageLimitOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })
})

const byHeader = ({ c }: Message) => c.req.header('x-user')!

function stopped(limit: number): Limiter {
  const store: Store = memoryStore({ clock: () => 0 })
  return createLimiter({ name: 'api', policies: [slidingLog({ limit, window: '1m' })], store })
}

async function serve(options: MessageLimitOptions, onMessage: WSEvents['onMessage'] = echo): Promise<string> {
  const app = new Hono().get('/', upgradeWebSocket(limitMessages(options)(() => ({ onMessage }))))
  const websocket = { server: new WebSocketServer({ noServer: true }) as never }
  server = (createAdaptorServer({ fetch: app.fetch, websocket }) as Server).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function fail(): never {
  throw new Error('no database')
}

function echo({ data }: MessageEvent, ws: WSContext): void {
  ws.send(String(data))
}

async function connect(url: string) {
  const client = new WebSocket(url, { headers: { 'x-user': 'ann' } })
  clients.push(client)
  const received: string[] = []
  client.on('message', (data: Buffer) => void received.push(String(data)))
  await once(client, 'open')
  return { client, received }
}
