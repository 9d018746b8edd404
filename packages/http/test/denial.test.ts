import {
  createLimiter,
  type Decision,
  type FailureMode,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '@sluice/core'
import { RemoteStore } from '@sluice/harness/stores'
import { createGuard, type Problem } from '../src/index.js'
import { FROM_HOME, guardOf, pass, plain, type PlainOptions, PlainResponse } from './plain-platform.js'

const TYPES = 'https://iana.org/assignments/http-problem-types'

describe('a denial', () => {
  it('is problem details of the type quota-exceeded', async () => {
    const { status, headers, body } = await denied(limiterOf({}))
    expect(status).toBe(429)
    expect(headers['Content-Type']).toBe('application/problem+json')
    expect(JSON.parse(body!)).toEqual({
      type: `${TYPES}#quota-exceeded`,
      title: 'Quota Exceeded',
      status: 429,
      detail: 'Too many requests. Try again in 60 seconds.',
      'violated-policies': ['api'],
    })
  })

  it.each([
    ['no more than a limit', { limit: 1, window: '1m' }, 'quota "q"'],
    ['a cost that never fits', { limit: 1, window: '1m', cost: () => 2 }, 'api'],
    ['an id', { limit: 1, window: '1m', denialId: (): string => '4f0a' }, 'api'],
    ['an id that JSON escapes', { limit: 1, window: '1m', denialId: (): string => 'a "b"\n' }, 'api'],
    [
      'two policies',
      { policies: [gcra({ limit: 1, window: '1s' }), gcra({ limit: 1, window: '1h' })] },
      'a"b',
    ],
  ] as const)('is the same as an object and as text: %s', (_, options, name) => {
    const sent: unknown[] = []
    const send = (_req: unknown, _res: unknown, problem: Problem, text: string) =>
      void sent.push([text, JSON.stringify(problem)])
    const guard = createGuard({ ...options, name }, { ...plain, send })
    for (let i = 0; i < 2; i++) void guard({ ...FROM_HOME }, new PlainResponse())
    expect(sent.length).toBeGreaterThan(0)
    for (const [text, problem] of sent as [string, string][]) expect(text).toBe(problem)
  })

  it('of a blocked key has a type and a text of its own, and names no policy', async () => {
    const limiter = limiterOf({ store: memoryStore({ clock: () => 0 }) })
    await limiter.block('ip:192.0.2.1', '90s')
    const { status, headers, body } = await pass([guardOf({ limiter })])
    expect([status, headers['Retry-After']]).toEqual([429, '90'])
    expect(JSON.parse(body!)).toEqual({
      type: `${TYPES}#abnormal-usage-detected`,
      title: 'Abnormal Usage Detected',
      status: 429,
      detail: 'This client is blocked. Try again in 90 seconds.',
      'violated-policies': [],
    })
  })

  it.each([
    ['one policy', [slidingLog({ limit: 1, window: '1m' })], ['api']],
    [
      'two',
      [slidingLog({ limit: 1, window: '1m', name: 'a' }), gcra({ limit: 1, window: '1h', name: 'b' })],
      ['api-a', 'api-b'],
    ],
  ])('of a blocked key reads like any other on request, with %s', async (_, policies, names) => {
    const limiter = limiterOf({ policies, store: memoryStore({ clock: () => 0 }) })
    await limiter.block('ip:192.0.2.1', '90s')
    const { body } = await pass([guardOf({ limiter, hideBlocks: true })])
    const detail = 'Too many requests. Try again in 90 seconds.'
    expect(JSON.parse(body!)).toMatchObject({ title: 'Quota Exceeded', detail, 'violated-policies': names })
  })

  it('forbids caches to store it', async () => {
    const { headers } = await denied(limiterOf({}))
    expect(headers['Cache-Control']).toBe('no-store')
  })

  it('names only the policies that deny, as the RateLimit headers do', async () => {
    const policies = [
      slidingLog({ limit: 1, window: '1s', name: 'a' }),
      slidingLog({ limit: 9, window: '1m', name: 'b' }),
      gcra({ limit: 1, window: '1h', name: 'c' }),
    ]
    const { body } = await denied(limiterOf({ policies }))
    expect(JSON.parse(body!)).toMatchObject({ 'violated-policies': ['api-a', 'api-c'] })
  })

  it("names only the denying limiter's policies if several limiters count", async () => {
    const limiter = limiterOf({})
    const { body } = await denied(limiter, {}, [guardOf({ limit: 9, window: '1m' })])
    expect(JSON.parse(body!)).toMatchObject({ 'violated-policies': ['api'] })
  })

  it('says that a cost never fits, and promises no time', async () => {
    const { headers, body } = await denied(limiterOf({}), { cost: () => 2 })
    expect(headers).not.toHaveProperty('Retry-After')
    expect(JSON.parse(body!)).toMatchObject({
      detail: 'This request takes more than the quota ever allows at once.',
      'violated-policies': ['api'],
    })
  })

  it.each(['block', 'hold'] as const)(
    'violates no policy if a %s caused it, and says when that ends',
    async (bar) => {
      const limiter = limiterOf({})
      await limiter[bar]('ip:192.0.2.1', '10m')
      const { headers, body } = await denied(limiter)
      expect(headers['Retry-After']).toBe('600')
      expect(JSON.parse(body!)).toMatchObject({ 'violated-policies': [] })
    },
  )

  it('is 503 temporary-reduced-capacity if the store cannot decide', async () => {
    const { status, headers, body } = await denied(cutOff('deny'))
    expect({ status, retryAfter: headers['Retry-After'] }).toEqual({ status: 503, retryAfter: '1' })
    expect(JSON.parse(body!)).toMatchObject({ type: `${TYPES}#temporary-reduced-capacity`, status: 503 })
  })

  it('is an ordinary 429 if the local policies decided while the store could not', async () => {
    const { status, headers, body } = await denied(cutOff('local'))
    expect({ status, retryAfter: headers['Retry-After'] }).toEqual({ status: 429, retryAfter: '60' })
    expect(JSON.parse(body!)).toMatchObject({ 'violated-policies': ['api'] })
  })
})

describe('denialId', () => {
  /** Notes the denials that it is asked about. */
  function noting() {
    const asked: string[] = []
    const denialId = ({ limiter, key, reason }: Decision) =>
      `no-${asked.push(`${limiter} ${key} ${reason ?? 'none'}`)}`
    return { asked, denialId }
  }

  it('is asked once for each denial, and its id is the instance', async () => {
    const { asked, denialId } = noting()
    const { body } = await denied(limiterOf({}), { denialId })
    expect(JSON.parse(body!)).toMatchObject({ status: 429, instance: 'urn:sluice:denial:no-1' })
    expect(asked).toEqual(['api ip:192.0.2.1 limit'])
  })

  it('is asked where onDenied answers, and before it', async () => {
    const { asked, denialId } = noting()
    const onDenied = (_req: unknown, res: PlainResponse) => void (res.body = String(asked))
    expect((await denied(limiterOf({}), { denialId, onDenied })).body).toBe('api ip:192.0.2.1 limit')
  })

  it('tells no more of a block that is hidden', async () => {
    const bodies = [false, true].map(async (isBlocked) => {
      const limiter = limiterOf({})
      if (isBlocked) await limiter.block('ip:192.0.2.1', '60s')
      const { body } = await denied(limiter, { hideBlocks: true, denialId: () => 'id' })
      return body
    })
    const [plainDenial, hidden] = await Promise.all(bodies)
    expect(hidden).toBe(plainDenial)
  })

  it('is asked about the one that binds, of several limits', async () => {
    const { asked, denialId } = noting()
    const options = { limit: 1, key: () => 'k', store: memoryStore({ clock: () => 0 }) }
    const limits = [
      { ...options, name: 'short', window: '1s' },
      { ...options, name: 'long', window: '1h' },
    ] as const
    const guard = createGuard({ limits, denialId }, plain)
    await pass([guard])
    const { body } = await pass([guard])
    expect(JSON.parse(body!)).toMatchObject({ instance: 'urn:sluice:denial:no-1' })
    expect(asked).toEqual(['long k limit'])
  })

  it.each<[string, Limiter, PlainOptions]>([
    ['a store that failed', cutOff('deny'), {}],
    ['shadow mode', limiterOf({ enforce: false }), {}],
    ['a caller on the list deny', limiterOf({}), { deny: ['192.0.2.1'] }],
  ])('is not asked about %s', async (_, limiter, options) => {
    const { asked, denialId } = noting()
    const { body } = await denied(limiter, { denialId, ...options })
    expect([asked, body ?? '']).toEqual([[], expect.not.stringContaining('instance')])
  })

  it('makes the guard throw when it throws, so that nothing passes', async () => {
    const denialId = () => {
      throw new Error('no id')
    }
    await expect(denied(limiterOf({}), { denialId })).rejects.toThrow('no id')
  })
})

describe('onDenied', () => {
  it('replaces the problem details, with status and headers set', async () => {
    const { status, headers, body } = await denied(limiterOf({}), {
      onDenied: (_req, res, decision) => void (res.body = `${res.status} ${decision.policy}`),
    })
    expect({ status, body }).toEqual({ status: 429, body: '429 1-per-1m' })
    expect(headers).toMatchObject({
      'Retry-After': '60',
      'Cache-Control': 'no-store',
      'X-RateLimit-Limit': '1',
    })
    expect(headers).not.toHaveProperty('Content-Type')
  })

  it('passes its result to the adapter', async () => {
    const guard = guardOf({ limiter: limiterOf({}), cost: () => 2, onDenied: async () => 'a response' })
    expect(await guard({ ...FROM_HOME }, new PlainResponse())).toEqual({ answer: 'a response' })
  })

  it('makes the guard throw when it throws', async () => {
    const onDenied = () => {
      throw new Error('no template')
    }
    await expect(denied(limiterOf({}), { onDenied })).rejects.toThrow('no template')
  })
})

/** The response to the second request, of which the limiter allows one. */
async function denied(
  limiter: Limiter,
  options: PlainOptions = {},
  before: Parameters<typeof pass>[0] = [],
): Promise<PlainResponse> {
  const guards = [...before, guardOf({ limiter, ...options })]
  await pass(guards).catch(() => undefined)
  return pass(guards)
}

function limiterOf(options: Partial<LimiterOptions>): Limiter {
  const policies = [slidingLog({ limit: 1, window: '1m' })]
  return createLimiter({ name: 'api', store: memoryStore({ clock: () => 0 }), policies, ...options })
}

/** A limiter whose store is out of reach. */
function cutOff(onStoreError: FailureMode): Limiter {
  const store = new RemoteStore(() => 0)
  store.fail('STORE_UNAVAILABLE')
  return limiterOf({ store, onStoreError })
}
