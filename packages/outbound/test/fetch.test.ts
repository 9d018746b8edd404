import { getEventListeners } from 'node:events'
import { createLimiter, createSemaphore, gcra, memoryStore, type Policy, tokenBucket } from '@sluice/core'
import { bytesInUse } from '../../core/test/faults/heap.js'
import { decisionOf, limitFetch, type OutboundEvent, type OutboundOptions } from '../src/index.js'

/** Timers and the clock of this file are Jest's, and the other side is a function: nothing sleeps. */
const URL_ = 'https://api.example/pay'
const limiterOf = (...policies: Policy[]) => createLimiter({ name: 'test', policies, store: memoryStore() })
const evenly = () => limiterOf(gcra({ limit: 10, window: '1s', burst: 1 }))
const generous = () => limiterOf(gcra({ limit: 1000, window: '1s' }))

interface Sent {
  readonly at: number
  readonly url: string
  readonly body: unknown
}

/** A limited fetch, what went out through it and when, and what was observed. `answer` gets the number of the call. */
function open(
  options: Partial<OutboundOptions> = {},
  answer: (n: number) => Response | Promise<Response> = () => new Response('ok'),
) {
  const sent: Sent[] = []
  const events: OutboundEvent[] = []
  const start = performance.now()
  const other = async (input: unknown, init?: RequestInit) => {
    sent.push({ at: Math.round(performance.now() - start), url: String(input), body: init?.body })
    return answer(sent.length)
  }
  const onEvent = (event: OutboundEvent) => events.push(event)
  const fetch = limitFetch(other, { limiter: generous(), onEvent, ...options })
  return { fetch, sent, events, at: () => sent.map(({ at }) => at) }
}

/** What a promise came to so far. */
function outcome<T>(promise: Promise<T>) {
  const seen: { value?: T; error?: any } = {}
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  )
  return seen
}
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
const refusal = (headers: Record<string, string> = {}, status = 429) =>
  new Response('no', { status, headers })

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

describe('a turn', () => {
  it('comes to each call in its order, as the limiter says', async () => {
    const { fetch, sent, at } = open({ limiter: evenly() })
    for (const i of [1, 2, 3, 4]) outcome(fetch(`${URL_}/${i}`))
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
    expect(sent.map(({ url }) => url.at(-1))).toEqual(['1', '2', '3', '4'])
  })

  it('is booked one at a time, so that others may book in between', async () => {
    const limiter = evenly()
    const { fetch } = open({ limiter })
    for (let i = 0; i < 5; i++) outcome(fetch(URL_))
    await pass(0)
    expect(await limiter.peek('https://api.example')).toMatchObject({ retryAfterMs: 200 })
  })

  it('is booked several ahead where that is asked for, and still goes to the highest priority first', async () => {
    const limiter = evenly()
    const batch = open({ limiter, prefetch: 3 })
    const user = open({ limiter, prefetch: 3, priority: 1 })
    for (let i = 0; i < 6; i++) outcome(batch.fetch(URL_))
    await pass(50)
    expect(await limiter.peek('https://api.example')).toMatchObject({ retryAfterMs: 350 })
    outcome(user.fetch(URL_))
    await pass(1000)
    expect(user.at()).toEqual([100])
    expect(batch.at()).toEqual([0, 200, 300, 400, 500, 600])
  })

  it('that was booked for one who leaves is for the next', async () => {
    const { fetch, at } = open({ limiter: evenly(), prefetch: 3 })
    const controllers = [1, 2, 3, 4, 5, 6].map(() => new AbortController())
    for (const { signal } of controllers) outcome(fetch(URL_, { signal }))
    await pass(50)
    for (const i of [1, 2]) controllers[i]!.abort(new Error('gone'))
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
  })

  it('is booked no more often than there are calls, when one leaves what others wait for', async () => {
    const limiter = evenly()
    const { fetch } = open({ limiter, prefetch: 2 })
    const controller = new AbortController()
    outcome(fetch(URL_))
    outcome(fetch(URL_, { signal: controller.signal }))
    outcome(fetch(URL_))
    outcome(fetch(URL_))
    await pass(50)
    controller.abort(new Error('gone'))
    await pass(60)
    expect((await limiter.peek('https://api.example')).retryAfterMs).toBe(190)
  })

  it('is kept for each origin unless there is a key', async () => {
    const apart = open({ limiter: evenly() })
    const together = open({ limiter: evenly(), key: 'provider' })
    for (const { fetch } of [apart, together]) {
      outcome(fetch('https://a.example/1'))
      outcome(fetch(new URL('https://b.example/1')))
      outcome(fetch(new Request('https://b.example:8443/1')))
    }
    await pass(1000)
    expect(apart.at()).toEqual([0, 0, 0])
    expect(together.at()).toEqual([0, 100, 200])
  })

  it('takes as many units as the call costs', async () => {
    const cost = ({ header }: { header(name: string): string | undefined }) => Number(header('x-cost') ?? 1)
    const { fetch, at } = open({ limiter: limiterOf(gcra({ limit: 10, window: '1s', burst: 5 })), cost })
    for (const units of ['5', '3', '1']) outcome(fetch(URL_, { headers: { 'X-Cost': units } }))
    await pass(1000)
    expect(at()).toEqual([0, 300, 400])
  })

  it('goes to the highest priority first, which waits for one place at most', async () => {
    const limiter = evenly()
    const batch = open({ limiter })
    const user = open({ limiter, priority: 1 })
    for (let i = 0; i < 10; i++) outcome(batch.fetch(URL_))
    await pass(150)
    outcome(user.fetch(URL_))
    outcome(user.fetch(URL_))
    await pass(1000)
    expect(user.at()).toEqual([200, 300])
    expect(batch.at()).toEqual([0, 100, 400, 500, 600, 700, 800, 900, 1000, 1100])
  })

  it('goes to a call of another cost only when the booked one has gone', async () => {
    const limiter = limiterOf(gcra({ limit: 10, window: '1s', burst: 4 }))
    const batch = open({ limiter, cost: 4 })
    const user = open({ limiter, cost: 1, priority: 1 })
    outcome(batch.fetch(URL_))
    outcome(batch.fetch(URL_))
    await pass(100)
    outcome(user.fetch(URL_))
    await pass(1000)
    expect(batch.at()).toEqual([0, 400])
    expect(user.at()).toEqual([500])
  })
})

describe('a call that goes out late', () => {
  /** A limiter whose turns are told so late, one for each call. */
  function lateBy(...ms: number[]) {
    const limiter = evenly()
    const acquire = limiter.acquire.bind(limiter)
    limiter.acquire = async (...args) =>
      Object.defineProperty(await acquire(...args), 'lateMs', { value: ms.shift() ?? 0 })
    return limiter
  }

  it('pays for one more place at the end of the line', async () => {
    const { fetch, at } = open({ limiter: lateBy(0, 11, 0) })
    for (let i = 0; i < 4; i++) outcome(fetch(URL_))
    await pass(1000)
    expect(at()).toEqual([0, 100, 300, 400])
  })

  it('pays nothing within what is tolerated', async () => {
    const { fetch, at } = open({ limiter: lateBy(10, 10, 10) })
    const tolerant = open({ limiter: lateBy(0, 900), lateness: '1s' })
    for (let i = 0; i < 3; i++) outcome(fetch(URL_))
    for (let i = 0; i < 3; i++) outcome(tolerant.fetch(URL_))
    await pass(1000)
    expect([at(), tolerant.at()]).toEqual([
      [0, 100, 200],
      [0, 100, 200],
    ])
  })

  it('leaves its decision to be settled by the caller', async () => {
    const { fetch } = open({ limiter: lateBy(11) })
    const response = await fetch(URL_)
    await expect(decisionOf(response)!.settle(0)).resolves.toBe(0)
  })
})

describe('a denial', () => {
  it('is an error that holds the decision, and nothing goes out', async () => {
    const { fetch, sent, events } = open({ limiter: evenly(), maxWait: 50 })
    await fetch(URL_)
    const second = outcome(fetch(URL_))
    await pass(0)
    expect(second.error).toMatchObject({
      name: 'RateLimitExceededError',
      code: 'RATE_LIMIT_EXCEEDED',
      key: 'https://api.example',
      reason: 'limit',
      decision: { allowed: false, retryAfterMs: 100 },
    })
    expect(sent).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'denied', reason: 'limit' })
  })

  it('comes as soon as it is known that no turn is in time', async () => {
    const { fetch, at } = open({ limiter: evenly(), maxWait: 250 })
    const calls = Array.from({ length: 5 }, () => outcome(fetch(URL_)))
    await pass(200)
    expect(at()).toEqual([0, 100, 200])
    expect(calls.map(({ error }) => error?.reason)).toEqual([
      undefined,
      undefined,
      undefined,
      'limit',
      'limit',
    ])
  })

  it('comes when maxWait is over to those who wait behind others in this process', async () => {
    const limiter = limiterOf(gcra({ limit: 1, window: '10s', burst: 1 }))
    const patient = open({ limiter })
    const hasty = open({ limiter, maxWait: 100 })
    await patient.fetch(URL_)
    outcome(patient.fetch(URL_))
    const call = outcome(hasty.fetch(URL_))
    await pass(99)
    expect(call.error).toBeUndefined()
    await pass(1)
    expect(call.error).toMatchObject({ reason: 'queue', decision: undefined })
  })

  it('comes at once when the queue is full', async () => {
    const { fetch } = open({ limiter: evenly(), maxQueue: 2 })
    await fetch(URL_)
    const [, , third] = [1, 2, 3].map(() => outcome(fetch(URL_)))
    await pass(0)
    expect(third!.error).toMatchObject({ reason: 'queue', decision: undefined })
  })

  it('says when a cost never fits, and lets the next one pass', async () => {
    const { fetch, sent } = open({
      limiter: evenly(),
      cost: ({ url }) => Number(url.searchParams.get('cost')),
    })
    const calls = ['2', '1'].map((cost) => outcome(fetch(`${URL_}?cost=${cost}`)))
    await pass(0)
    expect(calls[0]!.error).toMatchObject({ reason: 'cost' })
    expect(sent).toHaveLength(1)
  })

  it('says when the store cannot decide', async () => {
    const policies = [gcra({ limit: 1, window: '1s' })]
    const failing = { ...memoryStore(), now: () => 0, close: () => {} } as never as ReturnType<
      typeof memoryStore
    >
    Object.assign(failing, {
      keyspace: () => ({ policies, decide: () => Promise.reject(new Error('down')) }),
    })
    const limiter = createLimiter({ name: 'a', policies, store: failing, onStoreError: 'throw' })
    await expect(open({ limiter }).fetch(URL_)).rejects.toThrow('down')
  })
})

describe('an abort', () => {
  it('rejects with the reason, gives the place back, and nothing goes out', async () => {
    const limiter = evenly()
    const { fetch, sent } = open({ limiter })
    await fetch(URL_)
    const controller = new AbortController()
    const aborted = outcome(fetch(URL_, { signal: controller.signal }))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toEqual(new Error('gone'))
    expect(sent).toHaveLength(1)
    expect((await limiter.peek('https://api.example')).retryAfterMs).toBe(90)
  })

  it('leaves the booked place to the next in this process', async () => {
    const { fetch, at } = open({ limiter: evenly() })
    await fetch(URL_)
    const controller = new AbortController()
    outcome(fetch(URL_, { signal: controller.signal }))
    outcome(fetch(URL_))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(1000)
    expect(at()).toEqual([0, 100])
  })

  it('in the last moment gives the turn back', async () => {
    const limiter = evenly()
    const { fetch, sent } = open({ limiter })
    await fetch(URL_)
    const controller = new AbortController()
    limiter.on('decision', () => controller.abort(new Error('gone')))
    outcome(fetch(URL_, { signal: controller.signal }))
    await pass(100)
    expect(sent).toHaveLength(1)
    expect((await limiter.peek('https://api.example')).retryAfterMs).toBe(0)
  })

  it('of a Request counts as well', async () => {
    const { fetch } = open({ limiter: evenly() })
    await fetch(URL_)
    const controller = new AbortController()
    const aborted = outcome(fetch(new Request(URL_, { signal: controller.signal })))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toBeDefined()
  })
})

describe('obeying', () => {
  it('holds the key for everybody until Retry-After is over, and sends the call again then', async () => {
    const limiter = generous()
    const { fetch, at, events } = open({ limiter }, (n) =>
      n === 1 ? refusal({ 'retry-after': '3' }) : new Response(),
    )
    const first = outcome(fetch(URL_))
    await pass(10)
    expect(await limiter.consume('https://api.example')).toMatchObject({ allowed: false, reason: 'held' })
    outcome(fetch(URL_))
    await pass(2989)
    expect(at()).toEqual([0])
    await pass(1)
    expect(at()).toEqual([0, 3000, 3000])
    expect(first.value!.status).toBe(200)
    expect(events.map(({ type }) => type)).toEqual(['held', 'resumed', 'waited', 'waited'])
    expect(events[0]).toMatchObject({ status: 429, holdMs: 3000 })
  })

  it('takes back the place that was booked close ahead', async () => {
    let refuse: (response: Response) => void
    const { fetch, at } = open({ limiter: evenly() }, (n) =>
      n === 1 ? new Promise((resolve) => (refuse = resolve)) : new Response(),
    )
    outcome(fetch(URL_))
    outcome(fetch(URL_))
    await pass(50)
    refuse!(refusal({ 'retry-after': '1' }))
    await pass(2000)
    expect(at()).toEqual([0, 1050, 1150])
  })

  it('holds after a success that says nothing is left', async () => {
    const { fetch, at } = open({}, () => new Response('ok', { headers: { ratelimit: '"q";r=0;t=2' } }))
    await fetch(URL_)
    outcome(fetch(URL_))
    await pass(2000)
    expect(at()).toEqual([0, 2000])
  })

  it('bounds what the other side asks for', async () => {
    const { fetch, events } = open({ maxHold: '1m' }, () => refusal({ 'retry-after': '1000000000000' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(events).toEqual([{ type: 'held', key: 'https://api.example', status: 429, holdMs: 60_000 }])
  })

  it('takes it back too where the process has called a thousand other keys meanwhile', async () => {
    let refuse!: (response: Response) => void
    const slow = new Promise<Response>((resolve) => (refuse = resolve))
    const { fetch, sent } = open({ limiter: evenly() }, (n) => (n === 1 ? slow : new Response('ok')))
    outcome(fetch(`${URL_}/first`, { method: 'POST' }))
    await pass(0)
    for (let i = 0; i < 1100; i++) await fetch(`https://${i}.example/`)
    outcome(fetch(`${URL_}/second`))
    await pass(0)
    refuse(refusal({ 'Retry-After': '5' }))
    await pass(4900)
    expect(sent.at(-1)?.url).toBe('https://1099.example/')
    await pass(400)
    expect(sent.at(-1)?.url).toBe(`${URL_}/second`)
  })

  it('tells of one pause once, however many replies ask for it', async () => {
    const answers: ((response: Response) => void)[] = []
    const { fetch, events } = open({ retries: 0 }, () => new Promise((resolve) => answers.push(resolve)))
    const calls = Array.from({ length: 20 }, () => fetch(URL_))
    await pass(10)
    for (const answer of answers) answer(refusal({ 'retry-after': '3' }))
    expect(await Promise.all(calls)).toHaveLength(20)
    expect(events.filter(({ type }) => type === 'held')).toHaveLength(1)
  })

  it('pauses longer and longer after refusals that do not say how long', async () => {
    const { fetch, events } = open({ retries: 4, maxWait: '1m' }, (n) => (n < 5 ? refusal() : new Response()))
    const call = outcome(fetch(URL_))
    await pass(60_000)
    expect(call.value!.status).toBe(200)
    const pauses = events.flatMap((event) => (event.type === 'held' ? [event.holdMs] : []))
    expect(pauses).toHaveLength(4)
    for (const [i, ms] of pauses.entries()) {
      expect(ms).toBeGreaterThanOrEqual(750 * 2 ** i)
      expect(ms).toBeLessThanOrEqual(1000 * 2 ** i)
    }
  })
})

describe('sending again', () => {
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

  it('is for methods that are idempotent', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await sentBy({ method })).toHaveLength(2)
    }
    for (const method of ['POST', 'PATCH']) expect(await sentBy({ method })).toHaveLength(1)
  })

  it('is for what carries an Idempotency-Key, or is said to be repeatable', async () => {
    const headers = { 'Idempotency-Key': 'a' }
    expect(await sentBy({ method: 'POST', headers, body: 'x' })).toHaveLength(2)
    expect(await sentBy({ method: 'POST' }, { isRetryable: () => true })).toHaveLength(2)
    expect(await sentBy({ method: 'GET' }, { isRetryable: () => false })).toHaveLength(1)
  })

  it('brings the same body, and leaves alone what can be sent only once', async () => {
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
    /** Sends `request` to an other side that refuses at first; returns the bodies that arrived there. */
    async function bodiesOf(request: Request): Promise<string[]> {
      jest.useRealTimers()
      const bodies: string[] = []
      const fetch = limitFetch(
        async (input, init) => {
          bodies.push(await new Request(input, init).text())
          return bodies.length === 1 ? refusal({ 'retry-after-ms': '5' }) : new Response()
        },
        { limiter: generous() },
      )
      await fetch(request)
      return bodies
    }
    const put = (body: ConstructorParameters<typeof Response>[0]) =>
      new Request(URL_, { method: 'PUT', body, duplex: 'half' } as RequestInit)

    it('brings its body again', async () => {
      expect(await bodiesOf(put('pay'))).toEqual(['pay', 'pay'])
      expect(await bodiesOf(put(new URLSearchParams('a=1')))).toEqual(['a=1', 'a=1'])
      expect(await bodiesOf(new Request(URL_))).toEqual(['', ''])
    })

    it('is not made where its body is larger than what is kept', async () => {
      expect(await bodiesOf(put('a'.repeat(70_000)))).toHaveLength(1)
    })

    it('is not made where its body was refused before it ended', async () => {
      jest.useRealTimers()
      const never = new ReadableStream({ pull: () => new Promise(() => {}) })
      let sent = 0
      const fetch = limitFetch(async () => (sent++, refusal({ 'retry-after-ms': '5' })), {
        limiter: generous(),
      })
      expect((await fetch(put(never))).status).toBe(429)
      expect(sent).toBe(1)
    })
  })

  it('is made twice at most, however often the fetch is wrapped', async () => {
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

  it('is not made where the other side forbids it', async () => {
    const { fetch, sent } = open({}, () => refusal({ 'retry-after': '1', 'x-should-retry': 'false' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  it('follows a 403 and a 529 that ask for a pause, and no other 403', async () => {
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

  it('ends after `retries`, and then gives the answer to the caller', async () => {
    const { fetch, sent } = open({ retries: 3 }, () => refusal({ 'retry-after': '1' }))
    const call = outcome(fetch(URL_))
    await pass(10_000)
    expect(sent).toHaveLength(4)
    expect(call.value!.status).toBe(429)
    expect(await call.value!.text()).toBe('no')
  })

  it('is not begun where the pause outlasts maxWait: the caller gets the answer at once', async () => {
    const { fetch, sent } = open({ maxWait: '2s' }, () => refusal({ 'retry-after': '3' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(sent).toHaveLength(1)
  })

  it('is for 429 and 503 alone', async () => {
    for (const status of [400, 500, 502, 504]) {
      const { fetch, sent } = open({}, () => refusal({ 'retry-after': '1' }, status))
      expect((await fetch(URL_)).status).toBe(status)
      expect(sent).toHaveLength(1)
    }
    const { fetch, sent } = open({}, (n) => (n === 1 ? refusal({}, 503) : new Response()))
    const call = outcome(fetch(URL_))
    await pass(100)
    expect(call.value!.status).toBe(200)
    expect(sent).toHaveLength(2)
  })

  it('hands errors of the network to the caller', async () => {
    const { fetch, sent } = open({}, () => Promise.reject(new TypeError('fetch failed')))
    await expect(fetch(URL_)).rejects.toThrow('fetch failed')
    expect(sent).toHaveLength(1)
  })
})

describe('after a redirect', () => {
  const answered = (url: string, response: Response) => Object.defineProperty(response, 'url', { value: url })

  it('the origin that answered is paused, and the call is repeated when its pause is over', async () => {
    const limiter = generous()
    const { fetch, at, events } = open({ limiter }, (n) =>
      answered('https://b.example/pay', n === 1 ? refusal({ 'retry-after': '3' }) : new Response()),
    )
    const call = outcome(fetch(URL_))
    await pass(0)
    expect(await limiter.peek('https://api.example')).toMatchObject({ reason: undefined })
    expect(await limiter.peek('https://b.example')).toMatchObject({ reason: 'held' })
    await pass(4000)
    expect(call.value!.status).toBe(200)
    expect(at()[1]).toBeGreaterThanOrEqual(3000)
    expect(events[0]).toMatchObject({ type: 'held', key: 'https://b.example' })
  })

  it('a key of its own is asked about the address that answered', async () => {
    const limiter = generous()
    const key = ({ url }: { url: URL }) => url.host
    await open({ limiter, key, retries: 0 }, () =>
      answered('https://b.example/', refusal({ 'retry-after': '3' })),
    ).fetch(URL_)
    expect(await limiter.peek('b.example')).toMatchObject({ reason: 'held' })
  })
})

describe('pauseOf', () => {
  it('reads replies its own way, and leaves the rest to the usual one', async () => {
    const limiter = generous()
    const pauseOf: OutboundOptions['pauseOf'] = ({ reply }) =>
      reply.header('x-wait') === undefined ? undefined : Number(reply.header('x-wait'))
    const { fetch, at } = open({ limiter, pauseOf }, (n) =>
      n === 1
        ? refusal({ 'x-wait': '700' }, 400)
        : n === 2
          ? refusal({ 'retry-after': '2' })
          : new Response(),
    )
    const call = outcome(fetch(URL_))
    await pass(5000)
    expect(call.value!.status).toBe(200)
    expect(at()).toEqual([0, expect.closeTo(700, -2), expect.closeTo(2700, -2.5)])
  })

  it('that returns 0 lets calls go on', async () => {
    const { fetch, at } = open({ pauseOf: () => 0, retries: 0 }, () => refusal({ 'retry-after': '9' }))
    await fetch(URL_)
    await fetch(URL_)
    expect(at()).toEqual([0, 0])
  })

  it('that throws fails the call, and leaves no place taken', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const pauseOf = () => {
      throw new Error('mistake')
    }
    const cancel = jest.fn()
    const answer = () => new Response(new ReadableStream({ cancel }))
    await expect(open({ pauseOf, semaphore }, answer).fetch(URL_)).rejects.toThrow('mistake')
    expect(cancel).toHaveBeenCalled()
    expect((await semaphore.acquire('https://api.example', { maxWait: 0 })).allowed).toBe(true)
  })
})

describe('many calls on one signal', () => {
  it('listen to it once, so that no leak is suspected', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const { fetch } = open({ limiter: evenly() })
    const controller = new AbortController()
    const calls = Array.from({ length: 20 }, () => outcome(fetch(URL_, { signal: controller.signal })))
    await pass(0)
    expect(getEventListeners(controller.signal, 'abort').length).toBeLessThanOrEqual(1)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(calls.slice(1).map(({ error }) => error.message)).toEqual(Array.from({ length: 19 }, () => 'gone'))
    expect(warned).not.toHaveBeenCalled()
    warned.mockRestore()
  })

  it('leave nothing on it', async () => {
    const { fetch } = open({ limiter: evenly() })
    const controller = new AbortController()
    for (let i = 0; i < 3; i++) outcome(fetch(URL_, { signal: controller.signal }))
    await pass(1000)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })
})

describe('with a semaphore', () => {
  const limited = (limit = 1) => createSemaphore({ name: 'test', limit, store: memoryStore() })

  it('as many calls are under way as it allows, until their bodies have been read', async () => {
    const big = () => new Response(new Blob([new Uint8Array(200_000)]).stream())
    const { fetch, sent } = open({ semaphore: limited(2) }, big)
    const calls = [1, 2, 3].map(() => outcome(fetch(URL_)))
    await pass(10)
    expect(sent).toHaveLength(2)
    expect((await calls[0]!.value!.arrayBuffer()).byteLength).toBe(200_000)
    await pass(0)
    expect(sent).toHaveLength(3)
    await calls[1]!.value!.body!.cancel()
    outcome(fetch(URL_))
    await pass(0)
    expect(sent).toHaveLength(4)
  })

  it('a small body that nobody reads takes no place', async () => {
    const { fetch, sent } = open({ semaphore: limited() })
    for (let i = 0; i < 5; i++) await fetch(URL_)
    expect(sent).toHaveLength(5)
  })

  it('a response whose body was read holds nothing of its call', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const acquire = semaphore.acquire.bind(semaphore)
    const permits: WeakRef<object>[] = []
    semaphore.acquire = async (...args) => {
      const permit = await acquire(...args)
      permits.push(new WeakRef(permit))
      return permit
    }
    const { fetch } = open({ semaphore })
    const response = await fetch(URL_)
    await response.text()
    await new Promise(jest.requireActual<typeof import('node:timers')>('node:timers').setImmediate)
    bytesInUse()
    expect([permits.length, permits[0]?.deref()]).toEqual([1, undefined])
    expect(response.bodyUsed).toBe(true)
  })

  it('nor does an answer without a body, or an error', async () => {
    const { fetch, sent } = open({ semaphore: limited() }, (n) =>
      n === 2 ? Promise.reject(new Error('lost')) : new Response(null, { status: 204 }),
    )
    await fetch(URL_)
    await expect(fetch(URL_)).rejects.toThrow('lost')
    await fetch(URL_)
    expect(sent).toHaveLength(3)
  })

  it('a call that is repeated waits without a place', async () => {
    const semaphore = limited()
    const { fetch } = open({ semaphore }, (n) => (n === 1 ? refusal({ 'retry-after': '1' }) : new Response()))
    outcome(fetch(URL_))
    await pass(0)
    expect((await semaphore.acquire('https://api.example', { maxWait: 0 })).allowed).toBe(true)
  })

  it('a call that is denied by the limiter leaves its place to others', async () => {
    const semaphore = limited()
    const { fetch } = open({ semaphore, limiter: evenly(), maxWait: 50 })
    await fetch(URL_)
    await expect(fetch(URL_)).rejects.toMatchObject({ reason: 'limit' })
    expect((await semaphore.acquire('https://api.example', { maxWait: 0 })).allowed).toBe(true)
  })

  it('is denied for want of a place', async () => {
    const semaphore = limited()
    const held = await semaphore.acquire('https://api.example')
    const { fetch } = open({ semaphore, maxWait: 100 })
    const call = outcome(fetch(URL_))
    await pass(100)
    expect(call.error).toMatchObject({ reason: 'concurrency', decision: undefined })
    await held.release()
  })

  it('keeps the address, the status and the headers of the response', async () => {
    const answer = Object.defineProperty(new Response('ok', { status: 201, headers: { a: 'b' } }), 'url', {
      value: URL_,
    })
    const response = await open({ semaphore: limited() }, () => answer).fetch(URL_)
    expect(response).toMatchObject({ url: URL_, status: 201 })
    expect(response.headers.get('a')).toBe('b')
    expect(response.clone()).toMatchObject({ url: URL_, status: 201 })
    expect(response.clone().clone().url).toBe(URL_)
    expect(await response.text()).toBe('ok')
  })
})

describe('a budget', () => {
  it('is charged an estimate, and corrected to what the call turned out to cost', async () => {
    const limiter = limiterOf(tokenBucket({ limit: 1000, window: '1m' }))
    const { fetch } = open({ limiter, cost: 500 }, () => Response.json({ usage: { total_tokens: 120 } }))
    const response = await fetch(URL_, { method: 'POST', body: '{}' })
    expect((await limiter.peek('https://api.example')).remaining).toBe(500)
    const { usage } = (await response.json()) as { usage: { total_tokens: number } }
    await decisionOf(response)!.settle(usage.total_tokens)
    expect((await limiter.peek('https://api.example')).remaining).toBe(880)
  })

  it('that was underestimated makes the next call wait', async () => {
    const limiter = limiterOf(tokenBucket({ limit: 1000, window: '10s' }))
    const { fetch, at } = open({ limiter, cost: 500 })
    await decisionOf(await fetch(URL_))!.settle(1000)
    outcome(fetch(URL_))
    await pass(5000)
    expect(at()).toEqual([0, 5000])
  })

  it('is told apart from other limits of the same call', async () => {
    const budget = createLimiter({
      name: 'tokens',
      policies: [tokenBucket({ limit: 9, window: '1m' })],
      store: memoryStore(),
    })
    const { fetch } = open({ limiter: budget, cost: 5 })
    const semaphore = createSemaphore({ limit: 1 })
    const response = await limitFetch(fetch, { limiter: generous(), semaphore })(URL_)
    expect(decisionOf(response)!.limiter).toBe('test')
    expect(decisionOf(response, 'tokens')!.remaining).toBe(4)
    expect(decisionOf(response, 'others')).toBeUndefined()
  })

  it('has no decision for a response that came another way', () => {
    expect(decisionOf(new Response())).toBeUndefined()
  })
})

describe('options', () => {
  it.each([
    [{ limiter: undefined }, 'INVALID_OPTION'],
    [{ semaphore: {} }, 'INVALID_OPTION'],
    [{ key: 1 }, 'INVALID_OPTION'],
    [{ cost: '1' }, 'INVALID_OPTION'],
    [{ priority: '1' }, 'INVALID_OPTION'],
    [{ prefetch: 0 }, 'INVALID_OPTION'],
    [{ lateness: -1 }, 'INVALID_DURATION'],
    [{ maxQueue: 0 }, 'INVALID_OPTION'],
    [{ retries: 11 }, 'INVALID_OPTION'],
    [{ isRetryable: true }, 'INVALID_OPTION'],
    [{ onEvent: 'log' }, 'INVALID_OPTION'],
    [{ maxWait: '2d' }, 'INVALID_DURATION'],
    [{ maxHold: 0 }, 'INVALID_DURATION'],
  ])('%j that cannot work are refused while it is made', (options, code) => {
    expect(() => open(options as never)).toThrow(expect.objectContaining({ name: 'PolicyError', code }))
  })

  it.each([
    [{ ahead: 3 }, 'ahead is called prefetch'],
    [{ repeatable: () => true }, 'repeatable is called isRetryable'],
  ])('%j of a former version are refused with their new name', (options, message) => {
    expect(() => open(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', message }))
  })

  it('leave nothing behind: a listener that throws changes nothing about a call', async () => {
    const thrown: unknown[] = []
    const catching = jest.spyOn(globalThis, 'queueMicrotask').mockImplementation((task) => {
      try {
        task()
      } catch (error) {
        thrown.push(error)
      }
    })
    const onEvent = () => {
      throw new Error('listener')
    }
    const { fetch } = open({ onEvent, retries: 0 }, () => refusal({ 'retry-after': '1' }))
    expect((await fetch(URL_)).status).toBe(429)
    catching.mockRestore()
    expect(thrown).toEqual([new Error('listener')])
  })
})
