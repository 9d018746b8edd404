import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import axios, { type AxiosError } from 'axios'
import FormData from 'form-data'
import { Readable } from 'node:stream'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import { decisionOf, limitAxios, type OutboundEvent, type OutboundOptions } from '../src/index.js'
import { startFakeTime, whilePassing } from './real-io.js'

let other: OtherParty
const events: OutboundEvent[] = []
const waited = () => events.filter((event) => event.type === 'waited')
afterEach(() => {
  jest.useRealTimers()
  other.close()
})

type Answer = Parameters<typeof startOtherParty>[0]
const ok: Answer = (_, res) => res.end('ok')
const refuseFirst = refusingFirst({ 'retry-after-ms': '20' })

function refusingFirst(pause: Record<string, string>): Answer {
  return (n, res) => (n === 1 ? res.writeHead(429, pause).end('no') : res.end('ok'))
}

async function open(answer: Answer, options: Partial<OutboundOptions> = {}, kind: 'http' | 'fetch' = 'http') {
  other = await startOtherParty(answer)
  events.length = 0
  const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
  const onEvent = (event: OutboundEvent) => events.push(event)
  const adapter = limitAxios(axios.getAdapter(kind), { limiter, onEvent, ...options })
  return { client: axios.create({ baseURL: `${other.origin}/v1`, adapter }), limiter }
}

it.each(['http', 'fetch'] as const)('makes calls wait for their turn (%s adapter)', async (kind) => {
  startFakeTime()
  const { client } = await open(ok, {}, kind)
  const answers = await whilePassing(Promise.all([1, 2, 3].map(() => client.get<string>('/pay'))))
  expect(answers.map(({ data }) => data)).toEqual(['ok', 'ok', 'ok'])
  expect(waited()).toMatchObject([{ waitMs: 100 }, { waitMs: 200 }])
  expect(decisionOf(answers[0]!)!.allowed).toBe(true)
})

it('counts by origin, not by base URL', async () => {
  startFakeTime()
  const { client } = await open(ok)
  await whilePassing(Promise.all([client.get('/pay'), client.get(`${other.origin}/other`)]))
  expect(waited()).toMatchObject([{ key: other.origin, waitMs: 100 }])
})

it.each(['http', 'fetch'] as const)('retries a refused call with its body (%s adapter)', async (kind) => {
  const { client } = await open(refusingFirst({ 'retry-after': '1' }), {}, kind)
  expect((await client.put<string>('/pay', { amount: 1 })).data).toBe('ok')
  expect(other.arrived.map(({ body }) => body)).toEqual(['{"amount":1}', '{"amount":1}'])
  expect(other.arrived[1]!.at - other.arrived[0]!.at).toBeGreaterThanOrEqual(999)
})

it('retries a refusal that validateStatus accepts', async () => {
  const { client } = await open(refuseFirst)
  expect((await client.get('/pay', { validateStatus: () => true })).status).toBe(200)
})

it('rejects as axios does if the call cannot be retried', async () => {
  const { client } = await open(refuseFirst)
  await expect(client.post('/pay', 'x')).rejects.toMatchObject({ response: { status: 429, data: 'no' } })
  await expect(client.get('http://127.0.0.1:1/')).rejects.toMatchObject({ isAxiosError: true })
})

it('sends a stream once', async () => {
  const { client } = await open(refuseFirst)
  await expect(client.put('/pay', Readable.from(['x']))).rejects.toMatchObject({ response: { status: 429 } })
})

it.each(['http', 'fetch'] as const)(
  'sends a form of npm once, and releases its permit (%s adapter)',
  async (kind) => {
    const semaphore = createSemaphore({ limit: 1 })
    const { client } = await open(refuseFirst, { semaphore, maxWait: '30s' }, kind)
    const form = new FormData()
    form.append('amount', '1')
    await expect(client.put('/pay', form)).rejects.toMatchObject({ response: { status: 429 } })
    expect(other.arrived).toHaveLength(1)
    expect((await semaphore.acquire(other.origin, { maxWait: 0 })).allowed).toBe(true)
  },
)

it('sends an object that is posted as a form once', async () => {
  const { client } = await open(refuseFirst)
  await expect(client.putForm('/pay', { amount: 1 })).rejects.toMatchObject({ response: { status: 429 } })
  expect(other.arrived).toHaveLength(1)
})

describe('the URL of a call', () => {
  const urls: string[] = []
  const key = ({ url }: { url: URL }) => (urls.push(url.href), 'one')
  beforeEach(() => urls.splice(0))

  it('is the URL of the request, with the base and the parameters', async () => {
    const sent: string[] = []
    const { client } = await open((_, res, req) => (sent.push(req.url!), res.end()), { key })
    await client.get('pay', { params: { a: [1, 2], b: { c: 'x y' }, d: new Date(0), e: null } })
    await client.get('/pay?z=1#there', { params: new URLSearchParams('a=1') })
    await client.get('pay', { params: { a: [1, 2] }, paramsSerializer: { indexes: null } })
    await client.get('pay', { params: { a: 1 }, paramsSerializer: { serialize: () => 'own=1' } })
    expect(urls).toEqual(sent.map((path) => other.origin + path))
    expect(urls[0]).toContain('/v1/pay?a%5B%5D=1&a%5B%5D=2&b%5Bc%5D=x+y&d=1970-01-01T00:00:00.000Z')
  })
})

it('pauses the origin that replied after a redirect', async () => {
  const { client, limiter } = await open(
    (_, res, req) => {
      if (req.url === '/v1/pay')
        res.writeHead(302, { location: `${other.origin.replace('127.0.0.1', 'localhost')}/b` }).end()
      else res.writeHead(429, { 'retry-after': '7' }).end()
    },
    { retries: 0 },
  )
  await expect(client.get('/pay')).rejects.toMatchObject({ response: { status: 429 } })
  expect((await limiter.peek(other.origin)).reason).not.toBe('held')
  expect(await limiter.peek(other.origin.replace('127.0.0.1', 'localhost'))).toMatchObject({ reason: 'held' })
})

it('reports the config of the caller, which may be used again', async () => {
  const { client } = await open((n, res) =>
    res.writeHead(n < 6 ? 429 : 200, { 'retry-after-ms': '100' }).end(),
  )
  const failure: any = await client.get('/pay').catch((error: unknown) => error)
  expect([failure.response.status, Object.getOwnPropertySymbols(failure.config)]).toEqual([429, []])
  expect((await client.request(failure.config)).status).toBe(200)
})

it('rejects a waiting call when its CancelToken is cancelled', async () => {
  const { client, limiter } = await open(ok)
  await limiter.hold(other.origin, '10s')
  const source = axios.CancelToken.source()
  const waiting = client.get('/pay', { cancelToken: source.token })
  setTimeout(() => source.cancel('gone'), 50)
  expect(axios.isCancel(await waiting.catch((failure: unknown) => failure))).toBe(true)
  expect(other.arrived).toHaveLength(0)
})

it('retries at most twice, however often it is wrapped', async () => {
  other = await startOtherParty((_, res) => res.writeHead(429, { 'retry-after-ms': '100' }).end())
  const wrap = (adapter: ReturnType<typeof axios.getAdapter>) =>
    limitAxios(adapter, { limiter: createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] }) })
  const client = axios.create({ adapter: wrap(wrap(wrap(axios.getAdapter('http')))) })
  await expect(client.get(other.origin)).rejects.toMatchObject({ response: { status: 429 } })
  expect(other.arrived).toHaveLength(3)
})

it('rejects an aborted call that waits, and sends nothing', async () => {
  const { client, limiter } = await open(ok)
  await limiter.hold(other.origin, '10s')
  const controller = new AbortController()
  const waiting = client.get('/pay', { signal: controller.signal })
  setTimeout(() => controller.abort(new Error('gone')), 50)
  expect(axios.isCancel(await waiting.catch((failure: unknown) => failure))).toBe(true)
  expect(other.arrived).toHaveLength(0)
})

it('rejects with RateLimitExceededError if there is no turn in time', async () => {
  const limiter = createLimiter({ policies: [gcra({ limit: 1, window: '1h' })] })
  const { client } = await open(ok, { maxWait: 0, limiter })
  await client.get('/pay')
  await expect(client.get('/pay')).rejects.toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', reason: 'limit' })
})

it('holds the permit of a streamed response of the fetch adapter until the stream ends', async () => {
  const semaphore = createSemaphore({ limit: 1 })
  const { client } = await open(
    (_, res) => res.end(Buffer.alloc(500_000, 'a')),
    { semaphore, maxWait: '30s' },
    'fetch',
  )
  const { data } = await client.get<ReadableStream<Uint8Array>>('/pay', { responseType: 'stream' })
  expect((await semaphore.acquire(other.origin, { maxWait: 0 })).allowed).toBe(false)
  let length = 0
  for await (const chunk of data) length += chunk.length
  expect(length).toBe(500_000)
  expect((await semaphore.acquire(other.origin, { maxWait: '30s' })).allowed).toBe(true)
})

it('holds the permit of a streamed response until the stream closes', async () => {
  const semaphore = createSemaphore({ limit: 1 })
  const { client } = await open(ok, { semaphore, maxWait: '30s' })
  const { data } = await client.get<Readable>('/pay', { responseType: 'stream' })
  expect((await semaphore.acquire(other.origin, { maxWait: 0 })).allowed).toBe(false)
  for await (const chunk of data) expect(String(chunk)).toBe('ok')
  expect((await client.get<string>('/pay')).data).toBe('ok')
})

it.each(['http', 'fetch'] as const)(
  'holds no permit of a rejected call, whose stream is never read (%s adapter)',
  async (kind) => {
    const semaphore = createSemaphore({ limit: 1 })
    const fail: Answer = (_, res) => res.writeHead(500).end(Buffer.alloc(500_000, 'a'))
    const { client } = await open(fail, { semaphore }, kind)
    const failure = await client.get('/pay', { responseType: 'stream' }).catch((error: AxiosError) => error)
    expect(failure.status).toBe(500)
    expect((await semaphore.acquire(other.origin, { maxWait: 0 })).allowed).toBe(true)
    const stream = (failure as AxiosError).response!.data as Readable | ReadableStream
    await ('destroy' in stream ? stream.destroy() : stream.cancel()) // its connection would stay open
  },
)

it.each(['http', 'fetch'] as const)(
  'lets a hook read the body, which passes untouched (%s adapter)',
  async (kind) => {
    const pauseOf: OutboundOptions['pauseOf'] = async ({ reply }) =>
      ((await reply.json!()) as { readonly waitMs: number }).waitMs
    const answer: Answer = (n, res) =>
      res
        .writeHead(n === 1 ? 503 : 200, { 'content-type': 'application/json', 'content-length': 13 })
        .end(`{"waitMs":${n === 1 ? 30 : 10}}`)
    const { client } = await open(answer, { pauseOf }, kind)
    expect((await client.get('/pay')).data).toEqual({ waitMs: 10 })
    expect(other.arrived).toHaveLength(2)
  },
)

it.each([
  ['http', 'text', { waitMs: 30 }],
  ['http', 'arraybuffer', { waitMs: 30 }],
  ['fetch', 'arraybuffer', { waitMs: 30 }],
  ['http', 'stream', undefined],
] as const)(
  'reads an error for a hook through the %s adapter as %s',
  async (kind, responseType, expected) => {
    const seen: unknown[] = []
    const isRefusal: OutboundOptions['isRefusal'] = async ({ reply }) => void seen.push(await reply.json!())
    const type = { 'content-type': 'application/json' }
    const { client } = await open(
      (_, res) => res.writeHead(400, type).end('{"waitMs":30}'),
      { isRefusal },
      kind,
    )
    const { data } = await client.get<unknown>('/pay', { responseType, validateStatus: () => true })
    if (responseType === 'stream') (data as { destroy(): void }).destroy()
    else expect(Buffer.from(data as string).toString()).toBe('{"waitMs":30}')
    expect(seen).toEqual([expected])
  },
)

it('reads no error of more than 64 KiB for a hook', async () => {
  const seen: unknown[] = []
  const isRefusal: OutboundOptions['isRefusal'] = async ({ reply }) => void seen.push(await reply.json!())
  const type = { 'content-type': 'application/json' }
  const { client } = await open(
    (_, res) => res.writeHead(400, type).end(JSON.stringify('é'.repeat(40_000))),
    { isRefusal },
  )
  await client.get('/pay', { validateStatus: () => true })
  expect(seen).toEqual([undefined])
})
