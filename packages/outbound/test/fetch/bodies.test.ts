import fc from 'fast-check'
import type { OutboundOptions } from '../../src/index.js'
import { open, outcome, pass, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

/** A JSON reply, which states its length unless `headers` say otherwise. */
function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  const text = JSON.stringify(body)
  const sized = { ...JSON_TYPE, 'content-length': String(text.length), ...headers }
  return new Response(text, { status, headers: sized })
}

const unsized = (body: unknown, status: number) =>
  new Response(JSON.stringify(body), { status, headers: JSON_TYPE })

describe('a hook that asks for the body', () => {
  const waitInBody: OutboundOptions['pauseOf'] = async ({ reply }) => {
    const body = (await reply.json!()) as { readonly waitMs?: number } | undefined
    return body?.waitMs
  }

  it('gets the JSON, and the reply passes untouched', async () => {
    const seen: unknown[] = []
    const original = json({ waitMs: 700 })
    const pauseOf: OutboundOptions['pauseOf'] = async ({ reply }) => {
      seen.push(await reply.json!(), await reply.json!())
      return 0
    }
    const response = await open({ pauseOf }, () => original).fetch(URL_)
    expect(response).toBe(original)
    expect(await response.json()).toEqual({ waitMs: 700 })
    expect(seen).toEqual([{ waitMs: 700 }, { waitMs: 700 }])
  })

  it('may have the call sent again', async () => {
    const { fetch, at } = open({ pauseOf: waitInBody }, (n) =>
      n === 1 ? json({ waitMs: 700 }, 400) : json({}),
    )
    const call = outcome(fetch(URL_))
    await pass(1000)
    expect(call.value!.status).toBe(200)
    expect(at()).toEqual([0, expect.closeTo(700, -2)])
  })

  it.each([
    ['a refusal of unknown size', () => unsized({ a: 1 }, 429), { a: 1 }],
    ['an error of unknown size', () => unsized({ a: 1 }, 400), { a: 1 }],
    ['a success of unknown size', () => unsized({ a: 1 }, 200), undefined],
    ['a body above 64 kB', () => json({ a: 'x'.repeat(65_536) }), undefined],
    ['a refusal above 64 kB', () => unsized('x'.repeat(65_536), 503), undefined],
    ['another type', () => json({ a: 1 }, 429, { 'content-type': 'text/html' }), undefined],
    ['a stream of events', () => json({ a: 1 }, 429, { 'content-type': 'text/event-stream' }), undefined],
    [
      'a type that ends in +json',
      () => json({ a: 1 }, 200, { 'content-type': 'application/problem+json' }),
      { a: 1 },
    ],
    ['no JSON', () => new Response('{', { status: 429, headers: JSON_TYPE }), undefined],
    ['no body', () => new Response(null, { status: 429, headers: JSON_TYPE }), undefined],
  ])('gets what %s is read for', async (_, answer, expected) => {
    let seen: unknown = 'unasked'
    const pauseOf: OutboundOptions['pauseOf'] = async ({ reply }) => {
      seen = await reply.json!()
      return 0
    }
    const response = await open({ pauseOf, retries: 0 }, answer).fetch(URL_)
    expect(seen).toEqual(expected)
    expect(await response.text()).toBe(await answer().text())
  })

  it("gets that of a success of unknown size with readBody 'all'", async () => {
    const pauseOf: OutboundOptions['pauseOf'] = async ({ reply }) =>
      ((await reply.json!()) as { readonly waitMs: number }).waitMs
    const { fetch, events } = open({ pauseOf, readBody: 'all' }, () => unsized({ waitMs: 700 }, 200))
    expect(await (await fetch(URL_)).json()).toEqual({ waitMs: 700 })
    expect(events).toMatchObject([{ type: 'held', holdMs: 700 }])
  })

  it.each(['google', 'aws', 'openai', undefined] as const)(
    'delivers a stream of JSON of five seconds at once under provider %p',
    async (provider) => {
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.from('{"n":1}\n'))
          setTimeout(() => controller.close(), 5000)
        },
      })
      const stream = new Response(body, { headers: JSON_TYPE })
      const isRefusal: OutboundOptions['isRefusal'] = async ({ reply }) => (await reply.json!()) === 1
      const { fetch } = open(provider ? { provider } : { isRefusal }, () => stream)
      const reader = (await fetch(URL_)).body!.getReader()
      expect(String(await reader.read().then(({ value }) => Buffer.from(value)))).toBe('{"n":1}\n')
    },
  )

  it('waits for it for a second at most', async () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{"a":')) })
    const slow = new Response(body, { status: 429, headers: JSON_TYPE })
    const call = outcome(open({ pauseOf: waitInBody, retries: 0 }, () => slow).fetch(URL_))
    await pass(990)
    expect(call.value).toBeUndefined()
    await pass(20)
    expect(call.value).toBe(slow)
  })

  it('that does not ask leaves the body unread', async () => {
    const clone = jest.spyOn(Response.prototype, 'clone')
    await open({ isRefusal: () => false, pauseOf: () => undefined }).fetch(URL_)
    expect(clone).not.toHaveBeenCalled()
    clone.mockRestore()
  })
})

const RETRY_INFO = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' }
const cost = (requestedQueryCost: number, currentlyAvailable: number) => ({
  cost: {
    requestedQueryCost,
    throttleStatus: { maximumAvailable: 1000, currentlyAvailable, restoreRate: 50 },
  },
})
const THROTTLED = { errors: [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }] }
const AWS = { 'content-type': 'application/x-amz-json-1.0' }

describe('provider', () => {
  it.each<[NonNullable<OutboundOptions['provider']>, string, () => Response, number | undefined]>([
    ['google', 'RetryInfo', () => unsized({ error: { code: 429, details: [{}, RETRY_INFO] } }, 429), 34_500],
    ['google', 'RetryInfo in a list', () => unsized([{ error: { details: [RETRY_INFO] } }], 503), 34_500],
    ['google', 'a success', () => json({ error: { details: [RETRY_INFO] } }), undefined],
    [
      'google',
      'a 403 of a rate',
      () => unsized({ error: { errors: [{ reason: 'rateLimitExceeded' }] } }, 403),
      1000,
    ],
    [
      'google',
      'another 403',
      () => unsized({ error: { errors: [{ reason: 'forbidden' }] } }, 403),
      undefined,
    ],
    ['openai', 'a rate', () => unsized({ error: { code: 'rate_limit_exceeded' } }, 429), 1000],
    ['openai', 'no credit', () => unsized({ error: { code: 'insufficient_quota' } }, 429), undefined],
    [
      'shopify',
      'THROTTLED without a length',
      () => unsized({ ...THROTTLED, extensions: cost(502, 202) }, 200),
      6000,
    ],
    ['shopify', 'THROTTLED in a 200', () => json({ ...THROTTLED, extensions: cost(502, 202) }), 6000],
    ['shopify', 'less left than the query takes', () => json({ data: {}, extensions: cost(100, 95) }), 100],
    ['shopify', 'enough left', () => json({ data: {}, extensions: cost(100, 800) }), undefined],
  ])('%s: %s', async (provider, _, answer, holdMs) => {
    jest.spyOn(Math, 'random').mockReturnValue(1)
    const { fetch, events } = open({ provider, retries: 0 }, answer)
    await fetch(URL_)
    expect(events.flatMap((event) => (event.type === 'held' ? event.holdMs : []))).toEqual(
      holdMs === undefined ? [] : [holdMs],
    )
  })

  it.each([
    [
      'in __type',
      () =>
        json({ __type: 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException' }, 400, AWS),
      2,
    ],
    [
      'in the header',
      () => json({}, 400, { ...AWS, 'x-amzn-errortype': 'ThrottlingException:http://amazon.com/' }),
      2,
    ],
    [
      'of another error',
      () => json({ __type: 'com.amazon.coral.validate#ValidationException' }, 400, AWS),
      1,
    ],
  ])('aws: a code %s', async (_, answer, sends) => {
    const { fetch, sent } = open({ provider: 'aws', retries: 1 }, answer)
    const call = outcome(fetch(URL_))
    await pass(2000)
    expect(call.value!.status).toBe(400)
    expect(sent).toHaveLength(sends)
  })

  it.each(['google', 'shopify', 'aws', 'openai'] as const)('%s takes any JSON', async (provider) => {
    const names = fc.constantFrom(
      'error',
      'errors',
      'details',
      'extensions',
      'cost',
      'throttleStatus',
      '__type',
      'a',
    )
    const { json: any } = fc.letrec((tie) => ({
      json: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, 0, '', 'THROTTLED', 1e308),
        fc.dictionary(names, tie('json')),
        fc.array(tie('json'), { maxLength: 3 }),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(any, fc.constantFrom(200, 400, 403, 429), async (body, status) => {
        const { fetch } = open({ provider, retries: 0 }, () => unsized(body, status))
        expect((await fetch(URL_)).status).toBe(status)
      }),
      { numRuns: 200 },
    )
  })

  it('is never guessed', async () => {
    const { fetch, events } = open({ retries: 0 }, () => json({ ...THROTTLED, extensions: cost(502, 202) }))
    await fetch(URL_)
    expect(events).toEqual([])
  })
})
