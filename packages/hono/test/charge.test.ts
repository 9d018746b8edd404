import { createLimiter, createSemaphore, type Limiter, slidingLog } from '@sluice/core'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { setImmediate as turn } from 'node:timers/promises'
import { rateLimit } from '../src/index.js'

/* A runtime that knows Requests and Responses alone; @hono/node-server is what test/kit.test.ts runs on. */

describe('shouldCharge, without a server that reports what was sent', () => {
  let limiter: Limiter
  let shouldCharge: jest.Mock<boolean, [Context]>

  beforeEach(() => {
    limiter = createLimiter({ policies: [slidingLog({ limit: 4, window: '1m' })] })
    shouldCharge = jest.fn((c: Context) => c.res.status < 400)
  })

  it('is called when the runtime has read the last of the body, not before', async () => {
    const reader = (
      await respond(() => new Response(streamOf(['first', 'last']), { status: 500 }))
    ).body!.getReader()
    expect(text(await reader.read())).toBe('first')
    expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
    expect(text(await reader.read())).toBe('last')
    expect((await reader.read()).done).toBe(true)
    expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([1, 4])
  })

  it('changes neither status, headers nor body', async () => {
    const response = await respond((c) => c.json({ served: true }, 201, { 'X-Other': 'too' }))
    expect([response.status, response.headers.get('x-other')]).toEqual([201, 'too'])
    expect(await response.json()).toEqual({ served: true })
    expect(shouldCharge).toHaveReturnedWith(true)
    expect(await remaining()).toBe(3)
  })

  it.each<[string, string, (c: Context) => Response]>([
    ['without a body', 'GET', (c) => c.body(null, 500)],
    ['to HEAD', 'HEAD', (c) => c.text('served', 500)],
  ])('is called for a response %s, which has no body to wait for', async (_, method, handler) => {
    await respond(handler, { method })
    expect(await remaining()).toBe(4)
  })

  it('is not called if the runtime cancels the body', async () => {
    const cancelled = jest.fn()
    const response = await respond(() => new Response(streamOf(Array<string>(9).fill('part'), cancelled)))
    const reader = response.body!.getReader()
    await reader.read()
    await reader.cancel('hung up')
    expect(cancelled).toHaveBeenCalledWith('hung up')
    expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
  })

  it('is not called if the request was aborted', async () => {
    const caller = new AbortController()
    const response = await respond(() => new Response(streamOf(['first'])), { signal: caller.signal })
    caller.abort()
    await response.text()
    expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
  })

  it('is not called if the body breaks off', async () => {
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('no more')) })
    const response = await respond(() => new Response(broken))
    await expect(response.text()).rejects.toThrow('no more')
    expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
  })

  it('leaves a response as it is that begins a WebSocket, which a server may know by identity', async () => {
    const upgrade = Object.defineProperty(Response.error(), 'status', { value: 101 })
    expect(await respond(() => upgrade)).toBe(upgrade)
    expect(shouldCharge).toHaveBeenCalledTimes(1)
  })

  it('is asked about the response that is sent, where middleware between two limiters replaces another', async () => {
    const outer = jest.fn((c: Context) => c.res.status < 400)
    const app = new Hono()
      .use(rateLimit({ limiter, key: () => 'other', shouldCharge: outer }))
      .use(async (c, next) => {
        await next()
        c.res = new Response('sorry', { status: 503 })
      })
      .use(rateLimit({ limiter, key: () => 'k', shouldCharge }))
      .get('/', (c) => c.text('served'))
    const response = await app.request('/')
    expect([shouldCharge.mock.calls.length, outer.mock.calls.length]).toEqual([0, 0])
    await response.text()
    expect([shouldCharge.mock.results, outer.mock.results]).toEqual(
      Array(2).fill([{ type: 'return', value: false }]),
    )
  })

  it('does not hide that a handler returns no response', async () => {
    const failed = jest.fn((_error: Error, c: Context) => c.text('failed', 500))
    const app = new Hono().use(rateLimit({ limiter, key: () => 'k', shouldCharge })).onError(failed)
    app.get('/', () => undefined as never)
    expect((await app.request('/')).status).toBe(500)
    expect(failed.mock.calls[0]![0].message).toMatch('not finalized')
  })

  it('is called once by each of several limiters', async () => {
    const other = jest.fn(() => false)
    const app = new Hono()
      .use(rateLimit({ limiter, key: () => 'other', shouldCharge: other }))
      .use(rateLimit({ limiter, key: () => 'k', shouldCharge }))
      .get('/', (c) => c.text('served'))
    await (await app.request('/')).text()
    expect([shouldCharge.mock.calls.length, other.mock.calls.length]).toEqual([1, 1])
  })

  async function respond(handler: (c: Context) => Response, init?: RequestInit): Promise<Response> {
    const app = new Hono().use(rateLimit({ limiter, key: () => 'k', shouldCharge })).get('/', handler)
    return app.request('/', init)
  }

  async function remaining(): Promise<number> {
    return (await limiter.peek('k')).remaining
  }
})

describe('a permit, without a server that reports what was sent', () => {
  const semaphore = createSemaphore({ limit: 1 })
  const limiter = createLimiter({ policies: [slidingLog({ limit: 99, window: '1m' })] })
  const limited = (before?: MiddlewareHandler) =>
    new Hono()
      .use(before ?? ((_c, next) => next()))
      .use(rateLimit({ limits: [{ limiter }, { semaphore }], key: () => 'k' }))

  it.each<[string, (response: Response) => unknown, ReadableStream]>([
    ['been read', (response) => response.text(), streamOf(['all'])],
    ['been cancelled', (response) => response.body!.cancel(), streamOf(['all'])],
    [
      'failed',
      (response) => expect(response.text()).rejects.toThrow('no more'),
      new ReadableStream(
        { pull: (controller) => controller.error(new Error('no more')) },
        { highWaterMark: 0 },
      ),
    ],
  ])('is released when the body has %s', async (_, end, body) => {
    const response = await limited()
      .get('/', () => new Response(body))
      .request('/')
    expect(semaphore.inUse).toBe(1)
    await end(response)
    await turn()
    expect(semaphore.inUse).toBe(0)
  })

  it.each<[string, () => never]>([
    ['an error that Hono does not handle', () => fail('no error')],
    ['a handler that returns nothing', () => undefined as never],
  ])('is released after %s', async (_, handler) => {
    const app = limited().get('/', handler)
    app.onError((_error, c) => c.text('failed', 500))
    await Promise.resolve(app.request('/')).catch(() => {})
    await turn()
    expect(semaphore.inUse).toBe(0)
  })

  it.each<[string, () => Response]>([
    ['replaced', () => new Response('stack trace', { status: 500 })],
    ['made where the handler returns none', () => undefined as never],
    ['made where the handler fails', () => fail('no error')],
  ])('is held until a response has ended that middleware between two limiters has %s', async (_, handler) => {
    const app = limited()
      .use(async (c, next) => {
        await next().catch(() => {})
        c.res = new Response('sorry', { status: 500 })
      })
      .use(rateLimit({ limiter, key: () => 'inner' }))
      .get('/', handler)
    const response = await app.request('/')
    expect(semaphore.inUse).toBe(1)
    expect(await response.text()).toBe('sorry')
    await turn()
    expect(semaphore.inUse).toBe(0)
  })

  it('is released where the handler answers after a timeout has', async () => {
    let answer = (_text: string): void => {}
    const answered = new Promise<string>((resolve) => (answer = resolve))
    let handled: Promise<void> | undefined
    // As hono/timeout does: the rest goes on, and nobody waits for it.
    const app = limited(async (c, next) => {
      handled = next()
      await turn()
      return c.text('too late', 504)
    }).get('/', async (c) => c.text(await answered))
    const response = await app.request('/')
    expect([response.status, await response.text(), semaphore.inUse]).toEqual([504, 'too late', 1])
    answer('late')
    await handled
    await turn()
    expect(semaphore.inUse).toBe(0)
  })
})

function fail(reason: unknown): never {
  throw reason
}

function streamOf(
  chunks: readonly string[],
  cancel: (reason: unknown) => void = () => undefined,
): ReadableStream {
  const rest = chunks.map((chunk) => new TextEncoder().encode(chunk))
  return new ReadableStream({
    cancel,
    pull(controller) {
      const chunk = rest.shift()
      if (chunk) controller.enqueue(chunk)
      else controller.close()
    },
  })
}

function text({ value }: { value?: Uint8Array | undefined }): string {
  return new TextDecoder().decode(value)
}
