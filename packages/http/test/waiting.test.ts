import { createLimiter, gcra, type Limiter, memoryStore } from '@sluice/core'
import { outcome } from '@sluice/harness/figures'
import { createGuard } from '../src/index.js'
import { FROM_HOME, plain, type PlainOptions, type PlainRequest, PlainResponse } from './plain-platform.js'

let limiter: Limiter
let hungUp: (() => void)[]

beforeEach(() => {
  jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
  limiter = createLimiter({
    policies: [gcra({ limit: 1, window: '1s', burst: 1 })],
    store: memoryStore(),
    name: 'api',
  })
  hungUp = []
})
afterEach(() => jest.useRealTimers())

/** The outcomes of requests at one guard: undefined for those that may pass. */
function opened(options: PlainOptions) {
  const platform = {
    ...plain,
    onHungUp: (_req: PlainRequest, _res: PlainResponse, listener: () => void) => {
      hungUp.push(listener)
      return () => void hungUp.splice(hungUp.indexOf(listener), 1)
    },
  }
  const guard = createGuard({ limiter, key: (req) => req.address!, ...options }, platform)
  return (address = 'home') => {
    const res = new PlainResponse()
    const denied = outcome(
      Promise.resolve(guard({ ...FROM_HOME, address }, res)).then((value) => ({ value, status: res.status })),
    )
    return { res, denied }
  }
}

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

describe('maxWait', () => {
  it('lets requests over the limit wait for their turns', async () => {
    const send = opened({ maxWait: '10s' })
    const sent = Array.from({ length: 3 }, () => send())
    const passed = () => sent.filter(({ denied }) => denied.value !== undefined).length
    await pass(0)
    expect(passed()).toBe(1)
    await pass(999)
    expect(passed()).toBe(1)
    await pass(1)
    expect(passed()).toBe(2)
    await pass(1000)
    expect(sent.map(({ denied }) => denied.value)).toEqual(Array(3).fill({ value: undefined, status: 200 }))
    expect(sent[2]!.res.headers['X-RateLimit-Remaining']).toBe('0')
  })

  it('answers 429 at once where the turn would be later', async () => {
    const send = opened({ maxWait: 1500 })
    const sent = Array.from({ length: 3 }, () => send())
    await pass(0)
    expect(sent.map(({ res }) => res.status)).toEqual([200, 200, 429])
    expect(sent[2]!.res.headers['Retry-After']).toBe('2')
    await pass(1000)
    expect(sent[1]!.denied.value).toEqual({ value: undefined, status: 200 })
  })

  it('is 0 by default, and 0 decides in the same tick', () => {
    for (const options of [{}, { maxWait: 0 }]) {
      const guard = createGuard({ limiter, key: () => 'k', ...options }, plain)
      expect(guard({ ...FROM_HOME }, new PlainResponse())).not.toBeInstanceOf(Promise)
    }
  })

  it('gives the place back when the caller hangs up, and the request goes no further', async () => {
    const send = opened({ maxWait: '10s' })
    send()
    const [gone, next] = [send(), send()]
    await pass(10)
    expect(hungUp).toHaveLength(2)
    hungUp[1]!()
    hungUp[0]!()
    await pass(0)
    expect(gone.denied.value).toEqual({ value: { answer: undefined, hungUp: true }, status: 200 })
    expect(next.denied.value).toEqual(gone.denied.value)
    expect((await limiter.peek('home')).retryAfterMs).toBe(990)
    expect([limiter.waiting, hungUp]).toEqual([0, []])
  })

  it('waits with the cost and the policies of the request', async () => {
    const policies = [gcra({ limit: 10, window: '1s', burst: 1 })]
    const send = opened({ maxWait: '10s', policies: () => policies })
    const sent = [send(), send()]
    await pass(100)
    expect(sent[1]!.denied.value).toEqual({ value: undefined, status: 200 })
    const large = opened({ maxWait: '10s', cost: () => 2 })('other')
    await pass(0)
    expect(large.res.status).toBe(429)
  })
})

describe('maxWaiting', () => {
  it('is 16 a key by default: a request beyond it is answered at once', async () => {
    const send = opened({ maxWait: '1d' })
    send()
    await pass(0)
    const sent = Array.from({ length: 17 }, () => send())
    const other = [send('other'), send('other')]
    await pass(0)
    expect(sent.filter(({ res }) => res.status === 429)).toHaveLength(1)
    expect(other.filter(({ res }) => res.status === 429)).toHaveLength(0)
    await pass(1000)
    const late = send()
    await pass(0)
    expect([late.res.status, limiter.waiting]).toEqual([200, 16])
  })

  it('is 1,000 a process by default', async () => {
    const send = opened({ maxWait: '1d' })
    for (let i = 0; i < 1001; i++) send(`k${i}`)
    await pass(0)
    for (let i = 0; i < 1001; i++) send(`k${i}`)
    await pass(0)
    expect(limiter.waiting).toBe(1000)
  })

  it('may be set, one or both', async () => {
    const send = opened({ maxWait: '1d', maxWaiting: { process: 3, key: 2 } })
    for (const key of ['a', 'b']) send(key)
    await pass(0)
    const sent = ['a', 'a', 'a', 'b', 'b'].map((key) => send(key).res)
    await pass(0)
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 429, 200, 429])
  })

  it.each([
    [{ maxWait: '2d' }],
    [{ maxWait: -1 }],
    [{ maxWaiting: 5 }],
    [{ maxWaiting: { key: 0 } }],
    [{ maxWaiting: { all: 1 } }],
  ])('of %p is an error', (options) => {
    expect(() => opened(options as PlainOptions)).toThrow(/maxWait/)
  })
})
