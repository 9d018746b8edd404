import { gcra } from '@sluice/core'
import { decisionOf } from '../../src/index.js'
import { evenly, limiterOf, open, outcome, pass, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('a turn', () => {
  it('comes to each call in its order, as the limiter says', async () => {
    const { fetch, sent, at } = open({ limiter: evenly() })
    for (const i of [1, 2, 3, 4]) outcome(fetch(`${URL_}/${i}`))
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
    expect(sent.map(({ url }) => url.at(-1))).toEqual(['1', '2', '3', '4'])
  })

  it('is booked one at a time, so that other processes can book in between', async () => {
    const limiter = evenly()
    const { fetch } = open({ limiter })
    for (let i = 0; i < 5; i++) outcome(fetch(URL_))
    await pass(0)
    expect(await limiter.peek('https://api.example')).toMatchObject({ retryAfterMs: 200 })
  })

  it('is booked several in advance with prefetch, and still goes to the highest priority first', async () => {
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

  it('passes to the next call when its own is aborted', async () => {
    const { fetch, at } = open({ limiter: evenly(), prefetch: 3 })
    const controllers = [1, 2, 3, 4, 5, 6].map(() => new AbortController())
    for (const { signal } of controllers) outcome(fetch(URL_, { signal }))
    await pass(50)
    for (const i of [1, 2]) controllers[i]!.abort(new Error('gone'))
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
  })

  it('is booked no more often than there are calls, after one of them is aborted', async () => {
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

  it('is counted by origin unless a key is given', async () => {
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

  it('goes to the highest priority first, which waits for at most one other turn', async () => {
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

  it.each([NaN, undefined, '1', null])(
    'is refused to a call of priority %p, and goes to the next',
    async (priority) => {
      const limiter = evenly()
      const bad = open({ limiter, priority: () => priority as never })
      await expect(bad.fetch(URL_)).rejects.toMatchObject({ name: 'InputError', code: 'INVALID_PRIORITY' })
      const good = open({ limiter })
      outcome(good.fetch(URL_))
      outcome(good.fetch(URL_))
      await pass(1000)
      expect([bad.at(), good.at()]).toEqual([[], [0, 100]])
    },
  )

  it('goes to a call of another cost only after the call with the booking', async () => {
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
  /** A limiter whose decisions report this lateness, one number for each call. */
  function lateBy(...ms: number[]) {
    const limiter = evenly()
    const acquire = limiter.acquire.bind(limiter)
    limiter.acquire = async (...args) =>
      Object.defineProperty(await acquire(...args), 'lateMs', { value: ms.shift() ?? 0 })
    return limiter
  }

  it('is charged one more turn at the end of the queue', async () => {
    const { fetch, at } = open({ limiter: lateBy(0, 11, 0) })
    for (let i = 0; i < 4; i++) outcome(fetch(URL_))
    await pass(1000)
    expect(at()).toEqual([0, 100, 300, 400])
  })

  it('is one decision for those who listen: the turn that is left unused is no call', async () => {
    const limiter = lateBy(0, 11, 0)
    const { fetch, at } = open({ limiter })
    let decisions = 0
    limiter.on('decision', () => decisions++)
    for (let i = 0; i < 4; i++) outcome(fetch(URL_))
    await pass(1000)
    expect([decisions, at().length]).toEqual([4, 4])
  })

  it('is charged nothing more within its lateness', async () => {
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

  it('leaves its decision for the caller to settle', async () => {
    const { fetch } = open({ limiter: lateBy(11) })
    const response = await fetch(URL_)
    await expect(decisionOf(response)!.settle(0)).resolves.toBe(0)
  })
})
