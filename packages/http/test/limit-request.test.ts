import { createLimiter, createSemaphore, memoryStore, slidingLog } from '@sluice/core'
import { setImmediate as turn } from 'node:timers/promises'
import { limited, limitRequest, type LimitRequestOptions } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const ONE = { limit: 1, window: '1m' } as const
const HOME = { address: '192.0.2.1' }

describe('limitRequest', () => {
  it('lets a request pass with headers, and answers the one beyond the limit', async () => {
    const store = memoryStore({ clock: () => 0 })
    const limit = limitRequest({ name: 'default', ...ONE, store })
    const first = await limit(request(), HOME)
    expect([first.denied, first.headers.get('x-ratelimit-remaining')]).toEqual([undefined, '0'])
    const { denied, headers } = await limit(request(), HOME)
    expect([denied!.status, denied!.headers.get('content-type')]).toEqual([429, 'application/problem+json'])
    expect(denied!.headers.get('retry-after')).toBe('60')
    expect(headers.get('retry-after')).toBe('60')
    expect(await denied!.json()).toMatchObject({ title: 'Quota Exceeded', 'violated-policies': ['default'] })
    expect((await limit(request(), { address: '192.0.2.2' })).denied).toBeUndefined()
  })

  it.each([undefined, null, 'no address'])(
    'answers requests from %s under one key, and warns',
    async (address) => {
      const { limiter, seen } = observed(2)
      const limit = limitRequest({ limiter })
      for (let i = 0; i < 2; i++) expect((await limit(request(), { address })).denied).toBeUndefined()
      expect((await limit(request(), { address })).denied!.status).toBe(429)
      expect(seen).toEqual(['ADDRESS_UNKNOWN', 'ip:unknown', 'ip:unknown', 'ip:unknown'])
    },
  )

  it.each([
    [0, 'ip:192.0.2.1'],
    [1, 'ip:198.51.100.7'],
  ])('with %i trusted proxies counts the address %s', async (trustProxy, key) => {
    const { limiter, seen } = observed(2)
    await limitRequest({ limiter, trustProxy })(
      request({ 'x-forwarded-for': '203.0.113.9, 198.51.100.7' }),
      HOME,
    )
    expect(seen.filter((each) => each.startsWith('ip'))).toEqual([key])
  })

  it.each([
    ['warns of a header that is not read', '192.0.2.1', ['FORWARDED_NOT_TRUSTED', 'ip:192.0.2.1']],
    ['does not warn where the platform has read the header', '198.51.100.7', ['ip:198.51.100.7']],
  ])('%s', async (_, address, expected) => {
    const { limiter, seen } = observed(2)
    await limitRequest({ limiter })(request({ 'x-forwarded-for': '203.0.113.9, 198.51.100.7' }), { address })
    expect(seen).toEqual(expected)
  })

  it('refuses a number of proxies that cannot be', () => {
    expect(() => limitRequest({ ...ONE, trustProxy: -1 })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('trustProxy') }),
    )
  })

  it('does not count a request whose caller has hung up, where it has no address', async () => {
    const { limiter, seen } = observed(2)
    const { denied } = await limitRequest({ limiter })(request({}, AbortSignal.abort()), {
      address: undefined,
    })
    expect([denied!.status, seen]).toEqual([499, []])
  })

  it('answers with the response of onDenied and adds the headers that it lacks', async () => {
    const onDenied: LimitRequestOptions['onDenied'] = (_request, response, { policy }) =>
      Response.json({ policy }, { status: response.status, headers: { 'Retry-After': '61' } })
    const limit = limitRequest({ ...ONE, onDenied, key: () => 'k' })
    await limit(request())
    const { denied } = await limit(request())
    expect([denied!.status, await denied!.json()]).toEqual([429, { policy: '1-per-1m' }])
    expect(denied!.headers.get('retry-after')).toBe('61')
    expect(denied!.headers.get('x-ratelimit-limit')).toBe('1')
  })

  describe('finish', () => {
    const failed = { shouldCharge: (_request: Request, { status }: { status: number }) => status < 400 }

    it.each<[string, { status: number } | undefined, number]>([
      ['with the status of a failure gives the charge back', { status: 500 }, 1],
      ['with another status keeps it', { status: 204 }, 0],
      ['without a response keeps it', undefined, 0],
    ])('%s', async (_, response, left) => {
      const { limiter } = observed(1)
      const { finish } = await limitRequest({ limiter, ...failed, key: () => 'k' })(request())
      finish(response)
      await turn()
      expect((await limiter.peek('k')).remaining).toBe(left)
    })

    it('keeps the charge of a caller that hung up', async () => {
      const { limiter } = observed(1)
      const controller = new AbortController()
      const limit = limitRequest({ limiter, ...failed, key: () => 'k' })
      const { finish } = await limit(request({}, controller.signal))
      controller.abort()
      finish({ status: 500 })
      await turn()
      expect((await limiter.peek('k')).remaining).toBe(0)
    })
  })

  it('requires an address by its type, unless there is a key', () => {
    expectWarnings(['ADDRESS_UNKNOWN'])
    const byAddress = limitRequest(ONE)
    // @ts-expect-error -- an address is missing
    void byAddress(request())
    void limitRequest({ ...ONE, key: () => 'k' })(request())
    // @ts-expect-error -- a function for addresses is missing
    limited(() => new Response(), ONE)
    limited(() => new Response(), { ...ONE, key: () => 'k' })
  })
})

describe('limited', () => {
  it('puts the headers into the response of the handler, in place of those of limits that it has', async () => {
    const handler = limited(() => new Response('', { headers: { 'X-RateLimit-Limit': '7' } }), {
      ...ONE,
      key: () => 'k',
    })
    const { headers } = await handler(request())
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['1', '0'])
  })

  it('adds them to a response whose headers cannot be changed', async () => {
    const redirect = () => Response.redirect('http://localhost/elsewhere', 302)
    const response = await limited(redirect, { ...ONE, key: () => 'k' })(request())
    expect([response.status, response.headers.get('location')]).toEqual([302, 'http://localhost/elsewhere'])
    expect(response.headers.get('x-ratelimit-remaining')).toBe('0')
  })

  it('passes on as it is a response that begins a WebSocket, or that is an error of the network', async () => {
    const upgrade = Object.defineProperty(Response.error(), 'status', { value: 101 })
    for (const given of [upgrade, Response.error()]) {
      const handler = limited(() => given, { ...ONE, key: () => 'k', shouldCharge: () => true })
      expect(await handler(request())).toBe(given)
    }
  })

  it('passes the arguments of the platform to the handler and to address', async () => {
    const { limiter, seen } = observed(1)
    const handler = (_request: Request, { name }: { name: string; from: string }, more: number) =>
      new Response(name + more)
    const address = (_request: Request, { from }: { from: string }) => from
    const served = limited(handler, { limiter, address })
    const response = await served(request(), { name: 'n', from: '192.0.2.9' }, 1)
    expect([await response.text(), seen]).toEqual(['n1', ['ip:192.0.2.9']])
  })

  it('returns nothing where the handler returns nothing, as for a WebSocket of Bun', async () => {
    const none = undefined as unknown as Response
    expect(await limited(() => none, { ...ONE, key: () => 'k' })(request())).toBeUndefined()
  })

  it.each([[{ hello: 'world' }], [{ statusCode: 500, body: 'x' }], [{ headers: new Map(), body: 'x' }]])(
    'returns as it is what is no response, for the server to refuse, and releases its permit: %j',
    async (given) => {
      const none = given as unknown as Response
      const semaphore = createSemaphore({ limit: 1 })
      const { limiter } = observed(9)
      const handler = limited(() => none, { key: () => 'k', limits: [{ limiter }, { semaphore }] })
      expect(await handler(request())).toBe(none)
      expect(await handler(request())).toBe(none)
      await semaphore.close()
    },
  )

  it('gives a charge back once the body has been read', async () => {
    const { limiter } = observed(1)
    const handler = limited(() => new Response('failed', { status: 500 }), {
      limiter,
      key: () => 'k',
      shouldCharge: (_request, { status }) => status < 400,
    })
    const response = await handler(request())
    expect((await limiter.peek('k')).remaining).toBe(0)
    await response.text()
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it.each<[string, (response: Response) => Promise<unknown>]>([
    ['has been read', (response) => response.text()],
    ['fails', (response) => expect(response.text()).rejects.toThrow('no more')],
    ['is cancelled', (response) => response.body!.cancel()],
  ])('releases a permit once the body %s', async (what, end) => {
    const { limiter } = observed(9)
    const semaphore = createSemaphore({ limit: 1 })
    const shouldCharge = jest.fn(() => false)
    const pull = (controller: ReadableStreamDefaultController): void => {
      if (what === 'fails') controller.error(new Error('no more'))
      else controller.close()
    }
    const handler = limited(() => new Response(new ReadableStream({ pull }, { highWaterMark: 0 })), {
      limits: [{ limiter }, { semaphore }],
      shouldCharge,
      key: () => 'k',
    })
    const response = await handler(request())
    expect(semaphore.inUse).toBe(1)
    await end(response)
    await turn()
    expect([semaphore.inUse, shouldCharge.mock.calls.length]).toEqual([0, what === 'has been read' ? 1 : 0])
  })

  it('releases a permit where the handler returns a response that is read already', async () => {
    const { limiter } = observed(9)
    const semaphore = createSemaphore({ limit: 1 })
    const handler = limited(
      async () => {
        const response = new Response('taken')
        await response.text()
        return response
      },
      { limits: [{ limiter }, { semaphore }], key: () => 'k' },
    )
    await handler(request())
    await turn()
    expect(semaphore.inUse).toBe(0)
  })

  it('shows two limits in one set of headers', async () => {
    const inner = limited(() => new Response('served'), {
      ...ONE,
      name: 'inner',
      key: () => 'k',
      headers: 'ietf',
    })
    const outer = limited(inner, { limit: 9, window: '1m', name: 'outer', key: () => 'k', headers: 'ietf' })
    const { headers } = await outer(request())
    expect(headers.get('ratelimit')).toMatch(/^"outer";r=8;t=\d+, "inner";r=0;t=60$/)
  })
})

function request(headers: Record<string, string> = {}, signal?: AbortSignal): Request {
  return new Request('http://localhost/', { headers, ...(signal && { signal }) })
}

/** A limiter, and the codes of its warnings and the keys that it counts, in their order. */
function observed(limit: number) {
  const limiter = createLimiter({ policies: [slidingLog({ limit, window: '1m' })] })
  const seen: string[] = []
  limiter.on('warning', ({ code }) => void seen.push(code))
  limiter.on('decision', ({ key }) => void seen.push(key))
  return { limiter, seen }
}
