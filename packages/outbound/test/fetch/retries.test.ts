import { limitFetch, type OutboundOptions } from '../../src/index.js'
import { generous, open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('a retry', () => {
  const once = (n: number) => (n === 1 ? refusal({ 'retry-after': '1' }) : new Response('ok'))
  const sentBy = async (
    init?: RequestInit,
    options?: Partial<OutboundOptions>,
    url: string | Request = URL_,
  ) => {
    const { fetch, sent } = open(options, once)
    outcome(fetch(url, init))
    await pass(5000)
    return sent
  }

  it('follows for idempotent methods', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await sentBy({ method })).toHaveLength(2)
    }
    for (const method of ['POST', 'PATCH']) expect(await sentBy({ method })).toHaveLength(1)
  })

  it('passes on all of an init that is itself a Request', async () => {
    const seen: (string | null)[] = []
    const echo = async (input: unknown, init?: RequestInit) => {
      const request = new Request(input as string, init)
      seen.push(request.method, request.headers.get('authorization'), await request.text())
      return new Response('ok')
    }
    const init = new Request(URL_, { method: 'POST', headers: { authorization: 'me' }, body: 'text' })
    await limitFetch(echo as typeof fetch, { limiter: generous() })('https://api.example/other', init)
    expect(seen).toEqual(['POST', 'me', 'text'])
  })

  it('follows with an Idempotency-Key, or as isRetryable says', async () => {
    const headers = { 'Idempotency-Key': 'a' }
    expect(await sentBy({ method: 'POST', headers, body: 'x' })).toHaveLength(2)
    expect(await sentBy({ method: 'POST' }, { isRetryable: () => true })).toHaveLength(2)
    expect(await sentBy({ method: 'GET' }, { isRetryable: () => false })).toHaveLength(1)
  })

  it('sends the same body, and does not follow for a body that can be read only once', async () => {
    const form = new FormData()
    const bodies = [
      'text',
      new Uint8Array(3),
      new ArrayBuffer(3),
      new URLSearchParams('a=1'),
      new Blob(['a']),
      form,
    ]
    for (const body of bodies) {
      const sent = await sentBy({ method: 'PUT', body })
      expect(sent.map((call) => call.body)).toEqual([body, body])
    }
    const stream = () => new Blob(['a']).stream()
    expect(await sentBy({ method: 'PUT', body: stream() })).toHaveLength(1)
    expect(await sentBy({}, {}, new Request(URL_, { method: 'PUT' }))).toHaveLength(2)
  })

  describe('of a Request', () => {
    /** Sends `request` to a provider that refuses the first one; returns the bodies that arrived. */
    async function bodiesOf(request: Request, options?: RequestInit): Promise<string[]> {
      jest.useRealTimers()
      const bodies: string[] = []
      const fetch = limitFetch(
        async (input, init) => {
          bodies.push(await new Request(input, init).text())
          return bodies.length === 1 ? refusal({ 'retry-after-ms': '100' }) : new Response()
        },
        { limiter: generous() },
      )
      await fetch(request, options)
      return bodies
    }
    const put = (body: ConstructorParameters<typeof Response>[0]) =>
      new Request(URL_, { method: 'PUT', body, duplex: 'half' } as RequestInit)

    it('sends its body again', async () => {
      expect(await bodiesOf(put('pay'))).toEqual(['pay', 'pay'])
      expect(await bodiesOf(put(new URLSearchParams('a=1')))).toEqual(['a=1', 'a=1'])
      expect(await bodiesOf(new Request(URL_))).toEqual(['', ''])
    })

    it('sends the same body again, be it empty, if the options have one', async () => {
      expect(await bodiesOf(put('pay'), { body: '' })).toEqual(['', ''])
      expect(await bodiesOf(put('pay'), { body: null })).toEqual(['pay', 'pay'])
    })

    it('does not follow for a body larger than what is kept', async () => {
      expect(await bodiesOf(put('a'.repeat(70_000)))).toHaveLength(1)
    })

    it('does not follow if the refusal came before the end of the body', async () => {
      jest.useRealTimers()
      const never = new ReadableStream({ pull: () => new Promise(() => {}) })
      let sent = 0
      const fetch = limitFetch(async () => (sent++, refusal({ 'retry-after-ms': '100' })), {
        limiter: generous(),
      })
      expect((await fetch(put(never))).status).toBe(429)
      expect(sent).toBe(1)
    })
  })

  it('happens at most twice, however often the fetch is wrapped', async () => {
    const requests = generous()
    const { fetch, sent } = open({}, () => refusal({ 'retry-after': '1' }))
    const wrapped = limitFetch(
      (input, init) => limitFetch(fetch, { limiter: generous() })(input, { ...init }),
      { limiter: requests },
    )
    const call = outcome(wrapped(URL_))
    await pass(60_000)
    expect(call.value!.status).toBe(429)
    expect(sent).toHaveLength(3)
    expect((await requests.peek('https://api.example')).remaining).toBe(1000)
  })

  it('does not follow if the other side forbids it', async () => {
    const { fetch, sent } = open({}, () => refusal({ 'retry-after': '1', 'x-should-retry': 'false' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  it('follows a 403 or 529 that asks for a pause, and no other 403', async () => {
    for (const status of [403, 529]) {
      const { fetch, at } = open({}, (n) =>
        n === 1 ? refusal({ 'retry-after': '1' }, status) : new Response(),
      )
      const call = outcome(fetch(URL_))
      await pass(2000)
      expect([call.value!.status, at()[1]]).toEqual([200, 1000])
    }
    const { fetch, sent } = open({}, () => refusal({}, 403))
    expect((await fetch(URL_)).status).toBe(403)
    expect(sent).toHaveLength(1)
  })

  it('happens at most `retries` times; the caller gets the last reply', async () => {
    const { fetch, sent } = open({ retries: 3 }, () => refusal({ 'retry-after': '1' }))
    const call = outcome(fetch(URL_))
    await pass(10_000)
    expect(sent).toHaveLength(4)
    expect(call.value!.status).toBe(429)
    expect(await call.value!.text()).toBe('no')
  })

  it('does not follow if the pause outlasts maxWait: the caller gets the reply at once', async () => {
    const { fetch, sent } = open({ maxWait: '2s' }, () => refusal({ 'retry-after': '3' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  it('follows a first 503 or 529 that states no wait after about a second, and other calls do not wait', async () => {
    for (const status of [503, 529]) {
      const { fetch, at, events } = open({}, (n) => (n === 1 ? refusal({}, status) : new Response()))
      const call = outcome(fetch(URL_))
      await pass(10)
      await fetch(URL_)
      await pass(990)
      expect(call.value!.status).toBe(200)
      expect(at()).toEqual([0, 10, expect.closeTo(875, -2.4)])
      expect(events.filter(({ type }) => type === 'held')).toEqual([])
    }
  })

  it('follows what isRefusal names, by its Retry-After', async () => {
    const isRefusal: OutboundOptions['isRefusal'] = ({ reply }) => reply.status === 502
    const { fetch, at } = open({ isRefusal }, (n) =>
      n === 1 ? refusal({ 'retry-after': '2' }, 502) : new Response(),
    )
    const call = outcome(fetch(URL_))
    await pass(3000)
    expect(call.value!.status).toBe(200)
    expect(at()).toEqual([0, 2000])
  })

  it('follows no other status of 400 or more', async () => {
    for (const status of [400, 500, 502, 504]) {
      const { fetch, sent } = open({}, () => refusal({ 'retry-after': '1' }, status))
      expect((await fetch(URL_)).status).toBe(status)
      expect(sent).toHaveLength(1)
    }
  })

  it('does not follow a network error, which the caller gets', async () => {
    const { fetch, sent } = open({}, () => Promise.reject(new TypeError('fetch failed')))
    await expect(fetch(URL_)).rejects.toThrow('fetch failed')
    expect(sent).toHaveLength(1)
  })
})
