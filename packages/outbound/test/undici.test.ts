import { createLimiter, createSemaphore, gcra, type Limiter, type Policy, slidingLog } from '@sluice/core'
import { onSources } from '@sluice/harness/processes'
import FormData from 'form-data'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import {
  Agent,
  connect,
  type Dispatcher,
  fetch,
  interceptors,
  MockAgent,
  request,
  stream,
  upgrade,
} from 'undici'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import {
  decisionOf,
  limitFetch,
  limitUndici,
  type OutboundEvent,
  type OutboundOptions,
} from '../src/index.js'
import { startFakeTime, whilePassing } from './real-io.js'

let other: OtherParty
let agent: Agent
const events: OutboundEvent[] = []
const waited = () => events.filter((event) => event.type === 'waited')
afterEach(async () => {
  jest.useRealTimers()
  other.close()
  await agent.destroy()
  await Promise.all(limiters.splice(0).map((limiter) => limiter.close()))
})

/** Closed after each test: the sweepers of their keys would go on in the fake time of a later one. */
const limiters: Limiter[] = []
function limiterOf(policy: Policy): Limiter {
  const limiter = createLimiter({ policies: [policy] })
  limiters.push(limiter)
  return limiter
}

type Answer = Parameters<typeof startOtherParty>[0]
const ok: Answer = (_, res) => res.end('ok')
const refuseFirst = refusingFirst({ 'retry-after-ms': '20' })

function refusingFirst(pause: Record<string, string>): Answer {
  return (n, res) => (n === 1 ? res.writeHead(429, pause).end('no') : res.end('ok'))
}

async function open(answer: Answer, options: Partial<OutboundOptions> = {}) {
  other = await startOtherParty(answer)
  agent = new Agent()
  events.length = 0
  const limiter = limiterOf(gcra({ limit: 10, window: '1s', burst: 1 }))
  const onEvent = (event: OutboundEvent) => events.push(event)
  return { dispatcher: agent.compose(limitUndici({ limiter, onEvent, ...options })), limiter }
}
const gaps = () => other.arrived.slice(1).map(({ at }, i) => at - other.arrived[i]!.at)

function formOf(text: string): Readable {
  const form = new FormData()
  form.append('text', text)
  return form
}

const CODINGS: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gzipSync,
  'X-GZIP': gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  'deflate ': deflateRawSync, // as some servers send it
  'deflate, gzip': (bytes) => gzipSync(deflateSync(bytes)),
  identity: (bytes) => bytes,
}

it('fails a request whose handler throws once its verdict has come', async () => {
  const { dispatcher } = await open(ok, { isRefusal: async () => false })
  const factory = () => {
    throw new Error('no writable')
  }
  await expect(stream(other.origin, { dispatcher, method: 'GET' }, factory)).rejects.toThrow('no writable')
})

it.each([
  ['a hook', { isRefusal: () => fail() }],
  ['a listener of the response', {}],
])('fails a request where %s throws at once', async (_, options) => {
  const { dispatcher } = await open(ok, options)
  const factory = () => fail()
  await expect(stream(other.origin, { dispatcher, method: 'GET' }, factory)).rejects.toThrow('thrown')
})

function fail(): never {
  throw new Error('thrown')
}

it('makes requests wait for their turn', async () => {
  startFakeTime()
  const { dispatcher } = await open(ok)
  const textOf = async () => (await request(`${other.origin}/a?b=c`, { dispatcher })).body.text()
  expect(await whilePassing(Promise.all([1, 2, 3].map(textOf)))).toEqual(['ok', 'ok', 'ok'])
  const key = other.origin
  expect(waited()).toMatchObject([
    { key, waitMs: 100 },
    { key, waitMs: 200 },
  ])
})

it.each(['//other.example/a', '/\\other.example/a', '//', '/a//b', '/a?b=c'])(
  'counts a request for the path %j under the origin that it goes to',
  async (path) => {
    const keys: string[] = []
    const { dispatcher } = await open(ok, { key: ({ url }) => keys[keys.push(url.origin) - 1]! })
    const { body } = await request({ origin: other.origin, path, method: 'GET' } as never, { dispatcher })
    expect(await body.text()).toBe('ok')
    expect(keys).toEqual([other.origin])
  },
)

it("limits requests of undici's fetch", async () => {
  startFakeTime()
  const { dispatcher } = await open(ok)
  const textOf = async () => (await fetch(other.origin, { dispatcher })).text()
  expect(await whilePassing(Promise.all([1, 2].map(textOf)))).toEqual(['ok', 'ok'])
  expect(waited()).toMatchObject([{ waitMs: 100 }])
})

it("keeps the types of undici's fetch in limitFetch", async () => {
  const { limiter } = await open(ok)
  const limited: typeof fetch = limitFetch(fetch, { limiter })
  const response = await limited(other.origin, { dispatcher: agent })
  expect([await response.text(), decisionOf(response)?.allowed]).toEqual(['ok', true])
})

it('retries a refused request with its body after the pause', async () => {
  const { dispatcher } = await open(refusingFirst({ 'retry-after': '1' }))
  const { statusCode, body } = await request(other.origin, { dispatcher, method: 'PUT', body: 'pay' })
  expect([statusCode, await body.text()]).toEqual([200, 'ok'])
  expect(other.arrived.map((arrival) => arrival.body)).toEqual(['pay', 'pay'])
  expect(gaps()[0]).toBeGreaterThanOrEqual(999)
})

it.each([
  ['a POST', { method: 'POST', body: 'pay' } as const],
  ['a form of npm', { method: 'PUT', body: formOf('pay') } as const],
  ['a stream', { method: 'PUT', body: Readable.from(['pay']) } as const],
])('passes the refusal of %s to the caller', async (_, init) => {
  const { dispatcher } = await open(refuseFirst)
  const { statusCode, body } = await request(other.origin, { dispatcher, ...init })
  expect([statusCode, await body.text()]).toEqual([429, 'no'])
  expect(other.arrived).toHaveLength(1)
})

it.each([
  ['an object', { 'Idempotency-Key': 'a' }],
  ['a flat list', ['Idempotency-Key', 'a']],
  ['pairs', new Map([['Idempotency-Key', 'a']])],
])('retries a POST with an Idempotency-Key in %s', async (_, headers) => {
  const { dispatcher } = await open(refuseFirst)
  const { statusCode } = await request(other.origin, { dispatcher, method: 'POST', body: 'pay', headers })
  expect(statusCode).toBe(200)
})

it('aborts a refusal whose body does not end, and retries', async () => {
  const { dispatcher } = await open((n, res) => {
    if (n > 1) return void res.end('ok')
    res.writeHead(429, { 'retry-after': '1' })
    const timer = setInterval(() => res.write(Buffer.alloc(32_768)), 5)
    res.once('close', () => clearInterval(timer))
  })
  expect((await request(other.origin, { dispatcher })).statusCode).toBe(200)
})

it('rejects an aborted call that waits, and sends nothing', async () => {
  const { dispatcher, limiter } = await open(ok)
  await limiter.hold(other.origin, '10s')
  const controller = new AbortController()
  const waiting = request(other.origin, { dispatcher, signal: controller.signal })
  const fetching = fetch(other.origin, { dispatcher, signal: controller.signal })
  setTimeout(() => controller.abort(new Error('gone')), 50)
  await expect(waiting).rejects.toThrow('gone')
  await expect(fetching).rejects.toThrow('gone')
  expect(other.arrived).toHaveLength(0)
})

it('rejects a body that is aborted while it arrives', async () => {
  const { dispatcher } = await open((_, res) => void res.write('o'))
  const controller = new AbortController()
  const { body } = await request(other.origin, { dispatcher, signal: controller.signal })
  controller.abort(new Error('gone'))
  await expect(body.text()).rejects.toThrow('gone')
})

it('fails with RateLimitExceededError if there is no turn in time', async () => {
  const limiter = limiterOf(gcra({ limit: 1, window: '1h' }))
  const { dispatcher } = await open(ok, { maxWait: 0, limiter })
  await (await request(other.origin, { dispatcher })).body.dump()
  const error: unknown = await request(other.origin, { dispatcher }).catch((failure: unknown) => failure)
  expect(error).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', decision: { allowed: false } })
  expect(other.arrived).toHaveLength(1)
})

it('passes connection errors to the caller', async () => {
  const { dispatcher } = await open((_, res) => void res.destroy())
  await expect(request(other.origin, { dispatcher })).rejects.toThrow('other side closed')
})

describe('an upgrade', () => {
  const upgrading: Answer = (_, res) => res.writeHead(101, { connection: 'upgrade', upgrade: 'w' }).end()
  const upgraded = async (dispatcher: Dispatcher): Promise<void> => {
    const { socket } = await upgrade(other.origin, { dispatcher, protocol: 'w' })
    socket.destroy()
  }

  it('is an answer, upon which the calls that wait after a pause follow', async () => {
    startFakeTime()
    const pausing: Answer = (n, res, req) =>
      n === 1 ? res.writeHead(429, { 'retry-after-ms': '200' }).end() : upgrading(n, res, req)
    const limiter = limiterOf(gcra({ limit: 1000, window: '1s' }))
    const { dispatcher } = await open(pausing, { limiter, retries: 0 })
    await (await whilePassing(request(other.origin, { dispatcher }))).body.dump()
    await whilePassing(Promise.all([1, 2, 3, 4, 5, 6].map(() => upgraded(dispatcher))))
    expect(Math.max(...waited().map(({ waitMs }) => waitMs))).toBeLessThan(750)
  })

  it('ends its call, in events too, and is settled by its reply', async () => {
    const limiter = createLimiter({
      policies: [slidingLog({ limit: 100, window: '1d' })],
      reservations: {},
    })
    limiters.push(limiter)
    const units = jest.fn(() => undefined)
    const { dispatcher } = await open(upgrading, { limiter, cost: 40, settle: { units } })
    await upgraded(dispatcher)
    expect(events.filter(({ type }) => /started|done|idle/.test(type))).toMatchObject([
      { type: 'started' },
      { type: 'done', status: 101 },
      { type: 'idle' },
    ])
    expect(units).toHaveBeenCalledWith({
      reply: expect.objectContaining({ status: 101 }),
      text: '',
      isWhole: true,
    })
    expect((await limiter.peek(other.origin)).policies).toMatchObject([{ used: 40, held: 0 }])
  })
})

it('a tunnel that is refused is no answer, and costs nothing', async () => {
  const limiter = createLimiter({ policies: [slidingLog({ limit: 100, window: '1d' })], reservations: {} })
  limiters.push(limiter)
  const proxy = createServer()
  proxy.on('connect', (_, socket) => socket.end('HTTP/1.1 429 Too Many Requests\r\n\r\n'))
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { dispatcher } = await open(ok, { limiter, cost: 40, settle: { units: () => undefined } })
  const origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const { statusCode, socket } = await connect(origin, { dispatcher })
  socket.destroy()
  expect(statusCode).toBe(429)
  await new Promise(setImmediate) // which settles the call
  expect((await limiter.peek(origin)).policies).toMatchObject([{ used: 0, held: 0 }])
  await new Promise((resolve) => proxy.close(resolve))
})

it('holds permits of the semaphore until the bodies have arrived', async () => {
  const semaphore = createSemaphore({ limit: 2 })
  const limiter = limiterOf(gcra({ limit: 1000, window: '1s' }))
  const later: Answer = (_, res) => {
    res.write('o')
    setTimeout(() => res.end('k'), 20)
  }
  const { dispatcher } = await open(later, { semaphore, limiter })
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => (await request(other.origin, { dispatcher })).body.text()),
  )
  expect(answers).toEqual(Array.from({ length: 10 }, () => 'ok'))
  expect(other.mostAtOnce).toBe(2)
})

it('passes on the back-pressure of a slow reader', async () => {
  const { dispatcher } = await open((_, res) => res.end(Buffer.alloc(1_000_000, 'a')))
  const { body } = await request(other.origin, { dispatcher })
  let length = 0
  for await (const chunk of body) {
    length += (chunk as Buffer).length
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(length).toBe(1_000_000)
})

it('aborts a refusal whose body stalls, and retries', async () => {
  const { dispatcher } = await open((n, res) => {
    if (n > 1) return void res.end('ok')
    res.writeHead(429, { 'retry-after-ms': '10' })
    res.write('no')
  })
  expect((await request(other.origin, { dispatcher })).statusCode).toBe(200)
})

it('retries at most twice, however often it is wrapped', async () => {
  await open((_, res) => res.writeHead(429, { 'retry-after-ms': '100' }).end())
  const wrap = () => limitUndici({ limiter: limiterOf(gcra({ limit: 1000, window: '1s' })) })
  const dispatcher = agent.compose(wrap(), wrap(), wrap())
  expect((await request(other.origin, { dispatcher })).statusCode).toBe(429)
  expect(other.arrived).toHaveLength(3)
})

it.each(['inside', 'outside'])(
  'pauses the origin that replied when redirects are followed %s',
  async (where) => {
    const { limiter } = await open((_, res, req) => {
      if (req.url === '/')
        res.writeHead(302, { location: `${other.origin.replace('127.0.0.1', 'localhost')}/b` }).end()
      else res.writeHead(429, { 'retry-after': '7' }).end()
    })
    const [limit, redirect] = [
      limitUndici({ limiter, retries: 0 }),
      interceptors.redirect({ maxRedirections: 1 }),
    ]
    const dispatcher = agent.compose(...(where === 'inside' ? [redirect, limit] : [limit, redirect]))
    expect((await request(other.origin, { dispatcher })).statusCode).toBe(429)
    expect((await limiter.peek(other.origin)).reason).not.toBe('held')
    expect(await limiter.peek(other.origin.replace('127.0.0.1', 'localhost'))).toMatchObject({
      reason: 'held',
    })
  },
)

it('as an interceptor fails waiting calls at their turn when the agent is closed, and leaves no timer', async () => {
  startFakeTime()
  const { dispatcher, limiter } = await open(ok)
  expect(await (await whilePassing(request(other.origin, { dispatcher }))).body.text()).toBe('ok')
  await limiter.hold(other.origin, '10s')
  const calls = [1, 2, 3].map((i) => request(`${other.origin}/${i}`, { dispatcher }))
  const failures = Promise.all(calls.map((call) => call.catch((error: unknown) => error)))
  await dispatcher.close()
  expect(limiter.waiting).toBe(1) // the others queue behind it
  await jest.advanceTimersByTimeAsync(10_000)
  expect(await whilePassing(failures)).toMatchObject(Array(3).fill({ code: 'UND_ERR_DESTROYED' }))
  expect(other.arrived).toHaveLength(1)
  expect(limiter.waiting).toBe(0)
  await limiter.close() // with the sweeper of its keys
  expect(jest.getTimerCount()).toBe(0)
})

it('an interceptor fails waiting calls at once when the limiter is closed', async () => {
  const { dispatcher, limiter } = await open(ok)
  await limiter.hold(other.origin, '10s')
  const call = request(other.origin, { dispatcher })
  await dispatcher.close()
  await limiter.close()
  await expect(call).rejects.toMatchObject({ code: 'CLOSED' })
})

describe('replies that no server sent', () => {
  it('of MockAgent are limited', async () => {
    await open(ok)
    const mock = new MockAgent()
    mock.disableNetConnect()
    const pool = mock.get('https://api.example')
    pool.intercept({ path: '/' }).reply(429, 'no', { headers: { 'retry-after-ms': '20' } })
    pool.intercept({ path: '/' }).reply(200, 'ok').times(2)
    const limiter = limiterOf(gcra({ limit: 10, window: '1s' }))
    for (const dispatcher of [limitUndici(mock, { limiter }), mock.compose(limitUndici({ limiter }))]) {
      expect(await (await request('https://api.example/', { dispatcher })).body.text()).toBe('ok')
    }
    expect(mock.pendingInterceptors()).toEqual([])
    await mock.close()
  })

  it.each(['above', 'below'])('of a cache %s the limiter are delivered', async (where) => {
    const { limiter } = await open((_, res) =>
      res.writeHead(200, { 'cache-control': 'max-age=60' }).end('ok'),
    )
    const layers = [interceptors.cache(), limitUndici({ limiter })]
    const dispatcher = agent.compose(...(where === 'above' ? layers.toReversed() : layers))
    for (let call = 0; call < 2; call++) {
      expect(await (await request(other.origin, { dispatcher })).body.text()).toBe('ok')
    }
    expect(other.arrived).toHaveLength(1)
  })
})

it('reports the end of a request that an interceptor below refuses by throwing', async () => {
  const { limiter } = await open(ok)
  const refusing = () => (_options: unknown, _handler: unknown) => fail()
  const onEvent = (event: OutboundEvent) => events.push(event)
  const dispatcher = agent.compose(refusing, limitUndici({ limiter, onEvent }))
  await expect(request(other.origin, { dispatcher })).rejects.toThrow('thrown')
  expect(events.filter(({ type }) => /started|failed|idle/.test(type))).toMatchObject([
    { type: 'started' },
    { type: 'failed', error: new Error('thrown') },
    { type: 'idle' },
  ])
})

it('knows a host by its name above dns()', async () => {
  const keys: string[] = []
  const onEvent = (event: OutboundEvent) => event.type === 'started' && keys.push(event.key)
  const { limiter } = await open((_, res) => res.end('ok'))
  const named = other.origin.replace('127.0.0.1', 'localhost')
  const dispatcher = agent.compose(interceptors.dns(), limitUndici({ limiter, onEvent }))
  expect(await (await request(named, { dispatcher })).body.text()).toBe('ok')
  expect([keys, other.arrived.length]).toEqual([[named], 1])
})

describe('a dispatcher with a limit', () => {
  const dispatcherWith = (limiter: Limiter) => limitUndici(agent, { limiter })

  it('sends waiting calls before it closes, as the agent does', async () => {
    const { limiter } = await open(ok)
    const dispatcher = dispatcherWith(limiter)
    const calls = [1, 2, 3].map(async () => (await request(other.origin, { dispatcher })).body.text())
    const closed = dispatcher.close()
    await expect(request(other.origin, { dispatcher })).rejects.toMatchObject({ code: 'UND_ERR_CLOSED' })
    expect(await Promise.all(calls)).toEqual(['ok', 'ok', 'ok'])
    await closed
    expect(agent.closed).toBe(true)
  })

  it('fails waiting calls when it is destroyed', async () => {
    const { limiter } = await open(ok)
    await limiter.hold(other.origin, '10s')
    const dispatcher = dispatcherWith(limiter)
    const call = request(other.origin, { dispatcher })
    const destroyed = dispatcher.destroy()
    await expect(call).rejects.toMatchObject({ code: 'UND_ERR_DESTROYED' })
    await destroyed
    expect(other.arrived).toHaveLength(0)
  })

  it('accepts the callbacks that the agent accepts', async () => {
    const { limiter } = await open(ok)
    await new Promise<void>((resolve) => dispatcherWith(limiter).close(resolve))
    expect(agent.closed).toBe(true)
    await new Promise<void>((resolve) => dispatcherWith(limiter).destroy(resolve))
    expect(agent.destroyed).toBe(true)
  })

  it('can be composed further', async () => {
    const { limiter } = await open(refuseFirst)
    const dispatcher = dispatcherWith(limiter).compose(interceptors.redirect({ maxRedirections: 1 }))
    expect((await request(other.origin, { dispatcher })).statusCode).toBe(200)
    await dispatcher.close()
    expect(agent.closed).toBe(true)
  })
})

describe('a hook that asks for the body', () => {
  const JSON_TYPE = { 'content-type': 'application/json' }
  const pauseOf: OutboundOptions['pauseOf'] = async ({ reply }) =>
    ((await reply.json!()) as { readonly waitMs?: number } | undefined)?.waitMs

  it('has the request sent again, and the handler gets the last reply untouched', async () => {
    const { dispatcher } = await open(
      (n, res) =>
        res.writeHead(n === 1 ? 429 : 200, JSON_TYPE).end(JSON.stringify({ waitMs: n === 1 ? 30 : 0 })),
      { pauseOf },
    )
    const { statusCode, body } = await request(other.origin, { dispatcher })
    expect([statusCode, await body.json()]).toEqual([200, { waitMs: 0 }])
    expect(gaps()[0]).toBeGreaterThanOrEqual(29)
  })

  it('holds back no more than 64 kB', async () => {
    const text = JSON.stringify('x'.repeat(300_000))
    const { dispatcher } = await open((_, res) => res.writeHead(429, JSON_TYPE).end(text), {
      pauseOf,
      retries: 0,
    })
    const { body } = await request(other.origin, { dispatcher })
    expect(await body.text()).toBe(text)
  })

  it.each(Object.keys(CODINGS))(
    'gets the JSON of a body under %s, and the caller its bytes',
    async (encoding) => {
      const seen: unknown[] = []
      const packed = CODINGS[encoding]!(Buffer.from('{"waitMs":30}'))
      const { dispatcher } = await open(
        (_, res) => res.writeHead(429, { ...JSON_TYPE, 'content-encoding': encoding }).end(packed),
        { retries: 0, pauseOf: async ({ reply }) => void seen.push(await reply.json!()) },
      )
      const { body } = await request(other.origin, { dispatcher })
      expect(Buffer.from(await body.arrayBuffer())).toEqual(packed)
      expect(seen).toEqual([{ waitMs: 30 }])
    },
  )

  it.each([
    ['of more than 64 KiB once it is unpacked', 'gzip', gzipSync(JSON.stringify('x'.repeat(70_000)))],
    [
      'that takes more than 64 KiB on the way',
      'gzip, gzip',
      gzipSync(Buffer.concat([...Array<Buffer>(4000).fill(gzipSync('')), gzipSync('{"waitMs":30}')])),
    ],
    ['that is cut off', 'gzip', gzipSync('{"waitMs":30}').subarray(0, 20)],
    ['of an unknown coding', 'compress', Buffer.from('{"waitMs":30}')],
    ['of no coding', 'constructor', Buffer.from('{"waitMs":30}')],
    ['that is empty', 'br', Buffer.alloc(0)],
  ])('gets nothing of a body %s', async (_, encoding, packed) => {
    const seen: unknown[] = []
    const { dispatcher } = await open(
      (n, res) => res.writeHead(429, { ...JSON_TYPE, 'content-encoding': encoding }).end(packed),
      { retries: 0, pauseOf: async ({ reply }) => void seen.push(await reply.json!()) },
    )
    const { body } = await request(other.origin, { dispatcher })
    expect(Buffer.from(await body.arrayBuffer())).toEqual(packed)
    expect(seen).toEqual([undefined])
  })

  it('has a stream of JSON delivered at once', async () => {
    startFakeTime() // in which no second passes
    const { dispatcher } = await open((_, res) => res.writeHead(200, JSON_TYPE).write('{"n":1}\n'), {
      pauseOf,
      provider: 'aws',
    })
    const { body } = await request(other.origin, { dispatcher })
    const first: unknown = await new Promise((resolve) => body.once('data', resolve))
    expect(String(first)).toBe('{"n":1}\n')
    body.on('error', () => {}).destroy()
  })

  describe('of a connection that breaks meanwhile', () => {
    const cutOff: Answer = (n, res) => {
      if (n > 1) return void res.end('ok')
      res.writeHead(429, { ...JSON_TYPE, 'retry-after-ms': '20', 'content-length': '99' }).write('{"used":')
      setTimeout(() => res.destroy(), 20)
    }

    /** What the handler of a request hears until long after its end. */
    async function heardOf(dispatcher: Dispatcher, method: 'GET' | 'POST', abortAfterMs?: number) {
      const heard: string[] = []
      const at = { origin: other.origin, path: '/', method }
      const ended = new Promise<void>((end) => {
        dispatcher.dispatch(at, {
          onRequestStart(controller) {
            if (abortAfterMs !== undefined)
              setTimeout(() => controller.abort(new Error('gone')), abortAfterMs)
          },
          onResponseStart: (_, status) => void heard.push(String(status)),
          onResponseData: (_, chunk) => void heard.push(String(chunk)),
          onResponseEnd: () => end(void heard.push('end')),
          onResponseError: (_, error) => end(void heard.push(error.message)),
        })
      })
      await whilePassing(ended)
      await whilePassing(new Promise((resolve) => setTimeout(resolve, 2000)))
      return heard
    }
    const options = (): Partial<OutboundOptions> => ({
      provider: 'openai',
      semaphore: createSemaphore({ limit: 1 }),
    })
    beforeEach(startFakeTime)

    it('has a request that may be sent again sent again, once', async () => {
      const { dispatcher } = await open(cutOff, options())
      expect(await heardOf(dispatcher, 'GET')).toEqual(['200', 'ok', 'end'])
      expect(events.flatMap(({ type }) => (/done|retried|failed/.test(type) ? [type] : []))).toEqual([
        'retried',
        'done',
      ])
    })

    it('has any other get what has arrived, and then the failure', async () => {
      const limiter = createLimiter({
        policies: [slidingLog({ limit: 100, window: '1d' })],
        reservations: {},
      })
      limiters.push(limiter)
      const seen = jest.fn(() => 7)
      const settling = { limiter, cost: 40, settle: { units: seen } }
      const { dispatcher } = await open(cutOff, { ...options(), ...settling })
      expect(await heardOf(dispatcher, 'POST')).toEqual([
        '429',
        '{"used":',
        expect.stringContaining('closed'),
      ])
      expect(seen).toHaveBeenCalledWith(expect.objectContaining({ text: '{"used":', isWhole: false }))
      expect((await limiter.peek(other.origin)).policies).toMatchObject([{ used: 7, held: 0 }])
    })

    it('has a request that its handler aborts fail at once', async () => {
      const pending: OutboundOptions['pauseOf'] = () => new Promise(() => {})
      const { dispatcher } = await open(cutOff, { ...options(), pauseOf: pending })
      expect(await heardOf(dispatcher, 'GET', 10)).toEqual(['gone'])
    })
  })

  it('leaves a response paused whose handler has paused it', async () => {
    const { dispatcher } = await open(
      (_, res) => res.writeHead(429, JSON_TYPE).end(JSON.stringify('x'.repeat(300_000))),
      { pauseOf, retries: 0 },
    )
    let [bytes, whilePaused, isPaused] = [0, 0, false]
    await new Promise<void>((end) => {
      dispatcher.dispatch(
        { origin: other.origin, path: '/', method: 'GET' },
        {
          onRequestStart() {},
          onResponseStart(controller) {
            controller.pause()
            isPaused = true
            setTimeout(() => {
              isPaused = false
              controller.resume()
            }, 100)
          },
          onResponseData(_, chunk) {
            bytes += chunk.length
            if (isPaused) whilePaused += chunk.length
          },
          onResponseEnd: () => end(),
          onResponseError: () => end(),
        },
      )
    })
    expect(whilePaused).toBeLessThan(200_000) // what was held back until the verdict
    expect(bytes).toBe(300_002)
  })

  it('that throws fails the request, and releases its permit', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const mistake = async () => Promise.reject(new Error('mistake'))
    const { dispatcher } = await open(ok, { pauseOf: mistake, semaphore })
    await expect(request(other.origin, { dispatcher })).rejects.toThrow('mistake')
    expect((await semaphore.acquire(other.origin, { maxWait: 0 })).allowed).toBe(true)
  })
})

it('reports what a queue does', async () => {
  const { dispatcher } = await open((n, res) =>
    n === 1
      ? res.writeHead(429, { 'retry-after-ms': '10' }).end('no')
      : n === 2
        ? res.end('ok')
        : res.destroy(),
  )
  await (await request(other.origin, { dispatcher })).body.text()
  await expect(request(other.origin, { dispatcher })).rejects.toThrow('closed')
  const ends = events.flatMap((event) =>
    ['started', 'retried', 'done', 'failed'].includes(event.type) ? [event.type] : [],
  )
  expect(ends).toEqual(['started', 'retried', 'started', 'done', 'started', 'failed'])
})

it('takes other policies while requests wait', async () => {
  other = await startOtherParty(ok)
  agent = new Agent()
  const limited = limitUndici(agent, { limiter: limiterOf(gcra({ limit: 1, window: '20s', burst: 1 })) })
  const texts = [1, 2].map(async () => (await request(other.origin, { dispatcher: limited })).body.text())
  await texts[0]
  limited.setPolicies([gcra({ limit: 1000, window: '1s', burst: 1 })])
  expect(await texts[1]).toBe('ok')
})

describe('a dispatcher of undici 6', () => {
  // Node 20 and 22 bring one along.
  const itWithOne = process.versions['undici']!.startsWith('6.') ? it : it.skip

  itWithOne('is refused by name', () => {
    const code = `
      import { createLimiter, gcra } from '@sluice/core'
      import { limitUndici } from '@sluice/outbound'
      await fetch('data:,')
      const old = globalThis[Symbol.for('undici.globalDispatcher.1')]
      const limiter = createLimiter({ policies: [gcra({ limit: 1, window: '1s' })] })
      try { limitUndici(old, { limiter }) } catch (error) { console.log(error.message) }
      const dispatcher = old.compose(limitUndici({ limiter }))
      await fetch('http://127.0.0.1:60999', { dispatcher }).catch((error) => console.log(error.cause.message))`
    const args = [...onSources(), '--input-type=module', '--eval', code]
    const message = 'limitUndici takes a dispatcher of undici 7 or later, got one of undici 6\n'
    expect(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout).toBe(message + message)
  })
})
