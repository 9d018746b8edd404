import { createLimiter, createSemaphore, gcra, memoryStore, slidingLog } from '@sluice/core'
import { limitFetch, type OutboundOptions } from '../../src/index.js'
import {
  evenly,
  generous,
  limiterOf,
  open,
  outcome,
  pass,
  refusal,
  URL_,
  useFakeTime,
} from './limited-fetch.js'

useFakeTime()

describe('a pause', () => {
  it('holds the key for all callers until Retry-After is over, then sends the call again', async () => {
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

  it('cancels a turn that was booked before it', async () => {
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

  it('is kept in its process where the store has lost it', async () => {
    const limiter = generous()
    const { fetch, at } = open({ limiter }, (n) =>
      n === 1 ? refusal({ 'retry-after': '3' }) : new Response('ok'),
    )
    outcome(fetch(URL_))
    await pass(10)
    await limiter.reset('https://api.example')
    outcome(fetch(URL_))
    await pass(4000)
    expect(at()).toEqual([0, 3000, 3000])
  })

  it('is followed by spaced turns where the store has lost it', async () => {
    const policies = [gcra({ limit: 10, window: '1s', burst: 1 })]
    const store = memoryStore()
    const limiters = ['one', 'other'].map(() => createLimiter({ name: 'test', policies, store }))
    const begun = performance.now()
    const at: number[] = []
    const fetches = limiters.map((limiter) => {
      let asked = 0
      return limitFetch(
        async () => {
          at.push(Math.round(performance.now() - begun))
          return asked++ === 0 ? refusal({ 'retry-after': '1' }) : new Response('ok')
        },
        { limiter },
      )
    })
    for (const fetch of fetches) outcome(fetch(URL_))
    await pass(150)
    await limiters[0]!.reset('https://api.example')
    for (const fetch of fetches) outcome(fetch(URL_))
    await pass(2000)
    expect(at).toHaveLength(6)
    expect(Math.min(...at.slice(1).map((each, i) => each - at[i]!))).toBe(100)
  })

  it('takes no units of a call that cannot outlast it there', async () => {
    const limiter = limiterOf(slidingLog({ limit: 5, window: '1h' }))
    const { fetch } = open({ limiter, maxWait: '1s' }, () => refusal({ 'retry-after': '3' }))
    outcome(fetch(URL_))
    await pass(10)
    await limiter.reset('https://api.example')
    const call = outcome(fetch(URL_))
    await pass(10)
    expect(call.error).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', reason: 'held' })
    const { remaining, limit } = await limiter.peek('https://api.example')
    expect(remaining).toBe(limit)
  })

  it('follows a success whose quota is used up', async () => {
    const { fetch, at } = open({}, () => new Response('ok', { headers: { ratelimit: '"q";r=0;t=2' } }))
    await fetch(URL_)
    outcome(fetch(URL_))
    await pass(2000)
    expect(at()).toEqual([0, 2000])
  })

  it('is bounded by maxHold', async () => {
    const { fetch, events } = open({ maxHold: '1m' }, () => refusal({ 'retry-after': '999999999' }))
    expect((await fetch(URL_)).status).toBe(429)
    expect(events).toEqual([
      { type: 'held', limiter: 'test', key: 'https://api.example', status: 429, holdMs: 60_000 },
    ])
  })

  it('cancels the booked turn even after calls to a thousand other keys', async () => {
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

  it('is reported once, however many replies ask for it', async () => {
    const answers: ((response: Response) => void)[] = []
    const { fetch, events } = open({ retries: 0 }, () => new Promise((resolve) => answers.push(resolve)))
    const calls = Array.from({ length: 20 }, () => fetch(URL_))
    await pass(10)
    for (const answer of answers) answer(refusal({ 'retry-after': '3' }))
    expect(await Promise.all(calls)).toHaveLength(20)
    expect(events.filter(({ type }) => type === 'held')).toHaveLength(1)
  })

  it('of a tenth of a second is begun anew by the refusal of a call that waited for its end', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0)
    const { fetch, at } = open({ retries: 3 }, () => refusal({ 'retry-after-ms': '100' }))
    const call = outcome(fetch(URL_))
    await pass(1000)
    expect([at(), call.value?.status]).toEqual([[0, 100, 200, 300], 429])
  })

  it('doubles after each refusal that does not say how long', async () => {
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

describe('a success from a cache', () => {
  const cached = (headers: Record<string, string>) =>
    new Response('ok', { headers: { age: '9', ...headers } })

  it('holds nothing', async () => {
    const { fetch, at } = open({}, () => cached({ ratelimit: '"q";r=0;t=60' }))
    await fetch(URL_)
    await fetch(URL_)
    expect(at()).toEqual([0, 0])
  })

  it('does not end a row of refusals', async () => {
    const { fetch, events } = open({ retries: 0 }, (n) => (n === 2 ? cached({}) : refusal({}, 503)))
    for (let call = 0; call < 3; call++) await fetch(URL_)
    expect(events.filter(({ type }) => type === 'held')).toHaveLength(1)
  })
})

describe('503 and 529 without a stated wait', () => {
  it('pause the key when no success lies between two of them', async () => {
    const { fetch, events } = open({ retries: 0 }, (n) =>
      n === 2 ? new Response() : refusal({}, n % 2 ? 503 : 529),
    )
    const held = () => events.filter(({ type }) => type === 'held').length
    await fetch(URL_)
    await fetch(URL_)
    await fetch(URL_)
    expect(held()).toBe(0)
    await fetch(URL_)
    expect(held()).toBe(1)
  })

  it('of calls from before a pause do not lengthen the next one', async () => {
    const answers: ((response: Response) => void)[] = []
    const { fetch, events } = open({ retries: 0 }, () => new Promise((resolve) => answers.push(resolve)))
    for (let call = 0; call < 5; call++) outcome(fetch(URL_))
    await pass(10)
    for (const answer of answers.splice(0, 2)) answer(refusal({}, 503))
    await pass(1500)
    for (const answer of answers.splice(0, 3)) answer(refusal({}, 503))
    await pass(0)
    expect(events.filter(({ type }) => type === 'held')).toHaveLength(1)
  })
})

describe('after a pause', () => {
  const slow = (answers: ((response: Response) => void)[]) => (n: number) =>
    n === 1 ? refusal({ 'retry-after': '1' }) : new Promise<Response>((resolve) => answers.push(resolve))

  it('one call goes first, and each answer makes room for two', async () => {
    const answers: ((response: Response) => void)[] = []
    const { fetch, sent } = open({ retries: 0 }, slow(answers))
    await fetch(URL_)
    for (let call = 0; call < 10; call++) outcome(fetch(URL_))
    await pass(1500)
    expect(sent).toHaveLength(2)
    answers[0]!(new Response())
    await pass(100)
    expect(sent).toHaveLength(4)
    for (const answer of answers) answer(new Response())
    await pass(50)
    expect(sent).toHaveLength(8)
  })

  it('the number of calls doubles with time where answers are slow', async () => {
    const answers: ((response: Response) => void)[] = []
    const { fetch, sent } = open({ retries: 0 }, slow(answers))
    await fetch(URL_)
    for (let call = 0; call < 100; call++) outcome(fetch(URL_))
    await pass(1000)
    answers[0]!(new Response())
    await pass(760)
    expect(sent).toHaveLength(2 + 8)
  })

  it('calls with booked turns have the others looked at when there is room for more, and not again and again', async () => {
    const answers: ((response: Response) => void)[] = []
    const limiter = limiterOf(gcra({ limit: 1, window: '1s', burst: 1 }))
    const { fetch, sent } = open({ limiter, retries: 0, prefetch: 4, maxWait: '1m' }, slow(answers))
    await fetch(URL_)
    for (let call = 0; call < 9; call++) outcome(fetch(URL_))
    await pass(1000)
    answers[0]!(new Response())
    const timers = jest.spyOn(globalThis, 'setTimeout')
    await pass(900)
    expect([sent.length, timers.mock.calls.length < 10]).toEqual([2, true])
  })

  it('a call that gets no answer is followed by another, as late as after a refusal', async () => {
    const { fetch, at } = open({ retries: 0 }, slow([]))
    await fetch(URL_)
    for (let call = 0; call < 9; call++) outcome(fetch(URL_))
    await pass(9000)
    const gaps = at()
      .slice(1)
      .map((instant, i) => instant - at()[i]!)
    expect(gaps).toEqual([
      1000,
      expect.closeTo(875, -2.4),
      expect.closeTo(1750, -2.8),
      expect.closeTo(3500, -3.1),
    ])
  })

  it('all calls are served under a limit that is far above that of the other side', async () => {
    let level = 0
    let drainedAt = performance.now()
    const shopify = () => {
      const now = performance.now()
      level = Math.max(0, level - ((now - drainedAt) * 2) / 1000)
      drainedAt = now
      if (level + 1 > 40) return refusal({ 'retry-after': '2.0', 'x-shopify-shop-api-call-limit': '40/40' })
      const used = Math.ceil(++level)
      return new Response('ok', { headers: { 'x-shopify-shop-api-call-limit': `${used}/40` } })
    }
    const { fetch } = open({}, shopify)
    await Promise.all(Array.from({ length: 40 }, () => fetch(URL_)))
    const calls = Array.from({ length: 24 }, () => outcome(fetch(URL_)))
    await pass(30_000)
    expect(calls.filter(({ value }) => value?.status === 200)).toHaveLength(24)
  })
})

describe('after a redirect', () => {
  const answered = (url: string, response: Response) => Object.defineProperty(response, 'url', { value: url })

  it('the origin that replied is paused, and the call is retried when its pause is over', async () => {
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

  it('the key function gets the address that replied', async () => {
    const limiter = generous()
    const key = ({ url }: { url: URL }) => url.host
    await open({ limiter, key, retries: 0 }, () =>
      answered('https://b.example/', refusal({ 'retry-after': '3' })),
    ).fetch(URL_)
    expect(await limiter.peek('b.example')).toMatchObject({ reason: 'held' })
  })
})

describe('pauseOf', () => {
  it('reads its own headers, and leaves other replies to the known ones', async () => {
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

  it('that throws fails the call, and releases its permit', async () => {
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
