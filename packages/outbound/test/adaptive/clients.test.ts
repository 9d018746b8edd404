import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import {
  adaptive,
  createQueue,
  decisionOf,
  limitAxios,
  limitFetch,
  type OutboundEvent,
  type QueueEvent,
} from '../../src/index.js'
import { open, pass, refusal, URL_, useFakeTime } from '../fetch/limited-fetch.js'

/*
 * Clients whose limits nobody knows, on Jest's timers and clock.
 */
useFakeTime()

const BOUNDS = { min: 1, initial: 10, max: 1000 }
/** A limited fetch without a limiter; `answer` gets the number of the request. */
const openAdaptive = (options = {}, answer?: (n: number) => Response) =>
  open({ limiter: undefined, adaptive: { ...BOUNDS }, ...options }, answer)
/** Ten callers that call again and again for so many milliseconds; what waits then is left. */
async function work(fetch: (url: string) => Promise<unknown>, ms: number) {
  const end = performance.now() + ms
  for (let i = 0; i < 10; i++) {
    void (async () => {
      while (performance.now() < end) await fetch(URL_).catch(() => {})
    })()
  }
  await pass(ms)
}
const adapted = (events: readonly (OutboundEvent | QueueEvent)[]) =>
  events.filter((event) => event.type === 'adapted').map(({ limit, from, reason }) => [from, limit, reason])

describe('a rate that nobody knows', () => {
  it('begins with even turns at `initial`, and goes up while calls are served', async () => {
    const { fetch, events, at } = openAdaptive()
    await work(fetch, 2500)
    expect(at().slice(0, 5)).toEqual([0, 100, 200, 300, 400])
    expect(adapted(events)).toEqual([
      [10, 15, 'served'],
      [15, 22.5, 'served'],
    ])
  })

  it('is the limit that decisions show', async () => {
    const { fetch } = openAdaptive()
    const limits: unknown[] = []
    for (let i = 0; i < 14; i++) {
      const response = fetch(URL_)
      await pass(100)
      const decision = decisionOf(await response)!
      limits.push(decision.limit, decision.toJSON().limit)
    }
    expect(new Set(limits.slice(0, 20))).toEqual(new Set([10]))
    expect(limits.at(-1)).toBe(15)
  })

  it('falls by a refusal that states no wait, in place of a pause', async () => {
    const { fetch, events, at } = openAdaptive({ retries: 0 }, (n) =>
      n === 14 ? refusal() : new Response('ok'),
    )
    await work(fetch, 1800)
    expect(adapted(events)).toEqual([
      [10, 15, 'served'],
      [15, 10, 'refused'],
    ])
    expect(events.map(({ type }) => type)).not.toContain('held')
    expect(at().filter((ms) => ms > 1300 && ms < 1700).length).toBeGreaterThan(2)
  })

  it('falls by a refusal that states a wait, and the key is held for that long', async () => {
    const { fetch, events, at } = openAdaptive({ retries: 0 }, (n) =>
      n === 14 ? refusal({ 'Retry-After': '5' }) : new Response('ok'),
    )
    await work(fetch, 8000)
    expect(adapted(events)[1]).toEqual([15, 10, 'refused'])
    const [before, after] = [at()[13]!, at().find((ms) => ms > at()[13]! + 1000)!]
    expect(after - before).toBeGreaterThanOrEqual(5000)
  })

  it.each([
    ['a rate', () => ({ adaptive: BOUNDS })],
    [
      'calls at once',
      () => ({ semaphore: createSemaphore({ limit: adaptive({ min: 1, initial: 4, max: 30 }) }) }),
    ],
  ])('lets a call that its search has cost five refusals come through: %s', async (_, options) => {
    const { fetch, sent } = open({ limiter: undefined, ...options() }, (n) =>
      n <= 5 ? refusal({ 'Retry-After': '1' }) : new Response('ok'),
    )
    const response = fetch(URL_)
    await pass(20_000)
    expect((await response).status).toBe(200)
    expect(sent).toHaveLength(6)
  })

  it('is another one for each key', async () => {
    const { fetch, events } = openAdaptive()
    void fetch('https://other.example/')
    await work(fetch, 1300)
    expect(events.filter(({ type }) => type === 'adapted')).toMatchObject([{ key: 'https://api.example' }])
  })

  it('is shared by clients that are given the same object, and by no others', async () => {
    const bounds = { ...BOUNDS }
    const [first, second, other] = [bounds, bounds, { ...BOUNDS }].map((each) =>
      openAdaptive({ adaptive: each }),
    )
    await work(first!.fetch, 1300)
    const [shared, own] = [second!.fetch(URL_), other!.fetch(URL_)]
    await pass(1000)
    expect(decisionOf(await shared)!.limit).toBeGreaterThan(10)
    expect(decisionOf(await own)!.limit).toBe(10)
  })

  it('is found by queues and through axios too', async () => {
    const events: (OutboundEvent | QueueEvent)[] = []
    const onEvent = (event: OutboundEvent | QueueEvent) => events.push(event)
    const queue = createQueue({ adaptive: { ...BOUNDS }, onEvent })
    const limited = limitAxios(async (_config: object) => ({ status: 200, headers: {}, data: '' }), {
      adaptive: { ...BOUNDS },
      onEvent,
    })
    await work(() => queue.run(async () => new Response('ok')), 1300)
    expect(adapted(events)).toEqual([[10, 15, 'served']])
    await work((url) => limited({ url }), 1300)
    expect(adapted(events)).toHaveLength(2)
    expect(() => queue.setPolicies([gcra({ limit: 1, window: '1s' })])).toThrow('adaptive finds the rate')
  })

  it('counts the window that it is given, in its units', async () => {
    const { fetch, at } = openAdaptive({ adaptive: { min: 6, initial: 60, max: 6000, window: '1m' } })
    await work(fetch, 5000)
    expect(at().slice(0, 3)).toEqual([0, 1000, 2000])
  })

  const limiter = () => createLimiter({ policies: [gcra({ limit: 1, window: '1s' })] })
  it.each([
    ['a limiter beside it', { adaptive: BOUNDS, limiter: limiter() }, 'leave out one of them'],
    ['no source of turns', {}, 'a limiter, a semaphore or adaptive is required'],
    ['a number', { adaptive: 5 }, 'adaptive takes an object of options'],
    ['bounds out of order', { adaptive: { min: 5, initial: 1, max: 9 } }, 'min <= initial <= max'],
    ['an unknown name', { adaptive: { ...BOUNDS, maximum: 9 } }, 'maximum'],
    ['no window', { adaptive: { ...BOUNDS, window: 0 } }, 'adaptive.window'],
  ])('is refused with %s', (_, options, message) => {
    expect(() => limitFetch(fetch, options as never)).toThrow(
      expect.objectContaining({ name: 'PolicyError', message: expect.stringContaining(message) }),
    )
  })
})

describe('calls at once that nobody knows', () => {
  const semaphoreOf = () => createSemaphore({ limit: adaptive({ min: 1, initial: 2, max: 100 }) })
  /** Answers after 100 ms; refuses calls beyond so many at once. */
  function provider(most: number) {
    let underWay = 0
    return async () => {
      if (underWay >= most) return refusal()
      underWay++
      await new Promise((resolve) => setTimeout(resolve, 100))
      underWay--
      return new Response('ok')
    }
  }

  it('go up until they are refused, and the key is not held', async () => {
    const semaphore = semaphoreOf()
    const changes: (readonly [number, string])[] = []
    semaphore.on('adapted', ({ limit, reason }) => changes.push([limit, reason]))
    const { fetch, events } = open({ limiter: undefined, semaphore }, provider(5))
    await work(fetch, 6000)
    expect(changes.map(([, reason]) => reason)).toContain('refused')
    expect([4, 5]).toContain(semaphore.limitOf(new URL(URL_).origin))
    expect(events.map(({ type }) => type)).not.toContain('held')
  })

  it('do not fall because a call waits for its turn while it has a permit', async () => {
    const semaphore = semaphoreOf()
    const { fetch } = open({
      limiter: createLimiter({ policies: [gcra({ limit: 1, window: '1s', burst: 1 })] }),
      semaphore,
    })
    const origin = new URL(URL_).origin
    await work(fetch, 30_000)
    expect(semaphore.limitOf(origin)).toBeGreaterThanOrEqual(2)
  })

  it('take no account of calls that were not answered', async () => {
    const semaphore = semaphoreOf()
    const { fetch } = open({ limiter: undefined, semaphore }, () => {
      throw new TypeError('no connection')
    })
    for (let i = 0; i < 100; i++) await expect(fetch(URL_)).rejects.toThrow('no connection')
    expect(semaphore.limitOf(new URL(URL_).origin)).toBe(2)
  })

  it('take no account of a call whose key is paused before it goes out', async () => {
    const ended = jest.fn()
    const semaphore = createSemaphore({ limit: { initial: 2, follow: () => ({ limit: 2, ended }) } })
    const limiterOf = (limit: number) =>
      createLimiter({ name: `at-${limit}`, policies: [gcra({ limit, window: '1s', burst: 1 })] })
    const { fetch, at } = open({ limiter: [limiterOf(100), limiterOf(1)], semaphore, retries: 0 }, (n) =>
      n === 2 ? refusal({ 'Retry-After': '5' }) : new Response('ok'),
    )
    const calls = [1, 2, 3].map(async () => (await fetch(URL_)).text())
    await pass(4000)
    expect([at().length, ended.mock.calls.length]).toEqual([2, 2])
    await pass(10_000)
    await Promise.all(calls)
    expect([at().length, ended.mock.calls.length]).toEqual([3, 3])
  })
})
