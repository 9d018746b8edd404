import { createLimiter, createSemaphore, gcra, memoryStore, type Store } from '@sluice/core'
import { createQueue, decisionOf, limitFetch, type OutboundOptions } from '../../src/index.js'
import { open, outcome, pass, refusal, useFakeTime } from './limited-fetch.js'

useFakeTime()

const limiterOf = (name: string, limit: number, burst = limit) =>
  createLimiter({ name, policies: [gcra({ limit, window: '1s', burst })], store: memoryStore() })
const atOnceIn = (store: Store) => createSemaphore({ name: 'at once', limit: 1, store })
const key: NonNullable<OutboundOptions['key']> = [({ url }) => url.pathname, 'account']
const A = 'https://api.example/a'
const B = 'https://api.example/b'

describe('several limiters', () => {
  it('give their turns one after the other: a call waits for the slowest, and a used-up key for no other one', async () => {
    const endpoint = createLimiter({
      name: 'endpoint',
      policies: [gcra({ limit: 1000, window: '1s' })],
      store: memoryStore(),
    })
    await endpoint.hold('/a', '30s')
    const { fetch, sent, at } = open({ limiter: [endpoint, limiterOf('account', 5000)], key, maxWait: '1m' })
    for (let call = 0; call < 20; call++) outcome(fetch(A))
    await pass(10)
    const calls = Array.from({ length: 1000 }, () => outcome(fetch(B)))
    await pass(0)
    expect(calls.filter(({ value }) => value)).toHaveLength(1000)
    expect(at().at(-1)).toBe(10)
    await pass(30_000)
    expect(sent).toHaveLength(1020)
  })

  it('charge a turn of the first when it comes, and of the second only then', async () => {
    const [narrow, wide] = [limiterOf('narrow', 10, 1), limiterOf('wide', 5, 1)]
    const { fetch, at } = open({ limiter: [narrow, wide], key })
    for (let call = 0; call < 3; call++) outcome(fetch(A))
    await pass(50)
    expect((await narrow.peek('/a')).remaining).toBe(0)
    await pass(500)
    expect(at()).toEqual([0, 200, 400])
  })

  it('show each their decision', async () => {
    const { fetch } = open({ limiter: [limiterOf('narrow', 10), limiterOf('wide', 100)], key })
    const response = await fetch(A)
    expect(decisionOf(response, 'narrow')).toMatchObject({ key: '/a', remaining: 9 })
    expect(decisionOf(response)).toMatchObject({ key: 'account', remaining: 99 })
  })

  it('take the permits of semaphores beside them before the last turn, under keys of their own', async () => {
    const [narrow, wide] = [limiterOf('narrow', 10), limiterOf('wide', 10)]
    const atOnce = createSemaphore({ name: 'at once', limit: 1 })
    const other = createSemaphore({ name: 'a', limit: 5 })
    const answers: (() => void)[] = []
    const limiter: NonNullable<OutboundOptions['limiter']> = [atOnce, narrow, other, wide]
    const keys: NonNullable<OutboundOptions['key']> = [({ url }) => url.pathname, 'n', 'o', 'w']
    const { fetch, sent } = open({ limiter, key: keys, prefetch: 10 }, () => {
      return new Promise((answer) => answers.push(() => answer(new Response(null))))
    })
    const calls = [outcome(fetch(A)), outcome(fetch(A)), outcome(fetch(B))]
    await pass(0)
    // The second call waits for the permit of /a, and has not been charged by the last limiter.
    expect(sent.map(({ url }) => url)).toEqual([A, B])
    expect([atOnce.inUse, other.inUse, (await wide.peek('w')).remaining]).toEqual([2, 3, 8])
    answers.splice(0).forEach((answer) => answer())
    await pass(0)
    expect(sent).toHaveLength(3)
    answers.splice(0).forEach((answer) => answer())
    await pass(0)
    expect(calls.map(({ value }) => value !== undefined)).toEqual([true, true, true])
    expect([atOnce.inUse, other.inUse, (await wide.peek('w')).remaining]).toEqual([0, 0, 7])
  })

  it.each([
    ['without a store', () => [createSemaphore({ limit: 1 }), createSemaphore({ limit: 1 })] as const],
    ['in two stores', () => [atOnceIn(memoryStore()), atOnceIn(memoryStore())] as const],
  ])(
    'take permits of semaphores of one name in one order, whatever that of the list: %s',
    async (_, make) => {
      const [one, other] = make()
      const calls = [
        { limiter: [limiterOf('x', 10), one, other] as const },
        { limiter: [limiterOf('y', 10), other, one] as const },
        { limiter: [limiterOf('z', 10), other] as const, semaphore: one },
        { limiter: [limiterOf('w', 10), one] as const, semaphore: other },
      ].map((options) => outcome(open({ ...options, key: 'k', maxWait: '1s' }).fetch(A)))
      await pass(1000)
      expect(calls.map(({ value }) => value?.status)).toEqual([200, 200, 200, 200])
    },
  )

  it('take several permits of one semaphore in the order of their keys', async () => {
    const accounts = createSemaphore({ limit: 1 })
    const queue = createQueue({ limiter: [limiterOf('transfers', 100), accounts, accounts] })
    const transfer = (from: string, to: string) =>
      outcome(queue.run(() => 'done', { key: [`${from} ${to}`, from, to], maxWait: '1s' }))
    const calls = [transfer('a', 'b'), transfer('b', 'a'), transfer('b', 'c'), transfer('c', 'a')]
    await pass(1000)
    expect(calls.map(({ value }) => value)).toEqual(['done', 'done', 'done', 'done'])
  })

  it('release the permits of a call that gets no turn in time', async () => {
    const atOnce = createSemaphore({ name: 'at once', limit: 2 })
    const { fetch } = open({ limiter: [limiterOf('narrow', 1, 1), atOnce], key: 'k', maxWait: 100 })
    const calls = [outcome(fetch(A)), outcome(fetch(A))]
    await pass(0)
    await (calls[0]!.value as Response).text()
    await pass(200)
    expect([calls[1]!.error instanceof Error, atOnce.inUse]).toEqual([true, 0])
  })

  it('are at least one: semaphores alone are no limiters', () => {
    const atOnce = createSemaphore({ name: 'at once', limit: 1 })
    expect(() => open({ limiter: [atOnce] })).toThrow('semaphores stand beside limiters')
  })

  it('refuse a call whose key for one of them is none, and charge nothing', async () => {
    const [narrow, wide] = [limiterOf('narrow', 10), limiterOf('wide', 10)]
    const { fetch, sent } = open({ limiter: [narrow, wide], key: ['narrow', () => 'x'.repeat(9000)] })
    const refused = outcome(fetch(A))
    await pass(0)
    expect(refused.error).toMatchObject({ code: 'INVALID_KEY' })
    expect((await narrow.peek('narrow')).remaining).toBe(10)
    expect(sent).toHaveLength(0)
  })

  it('have one maxWait for all, and get back what a denied or an aborted call has', async () => {
    const [narrow, wide] = [limiterOf('narrow', 10), limiterOf('wide', 1, 1)]
    const { fetch } = open({ limiter: [narrow, wide], key })
    const { fetch: hasty, events } = open({ limiter: [narrow, wide], key, maxWait: 500 })
    await fetch(A)
    const controller = new AbortController()
    const aborted = outcome(fetch(A, { signal: controller.signal }))
    const denied = outcome(hasty(A))
    await pass(100)
    controller.abort(new Error('enough'))
    await pass(500)
    expect(denied.error).toMatchObject({ key: 'account' })
    expect(aborted.error).toEqual(new Error('enough'))
    expect(events.filter(({ type }) => type === 'denied')).toHaveLength(1)
    await pass(1000)
    expect((await narrow.peek('/a')).remaining).toBe(10)
  })

  it('hold the key of the first when the other side refuses, also for calls that wait for the second', async () => {
    const [narrow, wide] = [limiterOf('narrow', 100), limiterOf('wide', 10, 1)]
    let refuse: (response: Response) => void
    const { fetch, at } = open({ limiter: [narrow, wide], key, retries: 0 }, (n) =>
      n === 1 ? new Promise((resolve) => (refuse = resolve)) : new Response(),
    )
    for (let call = 0; call < 4; call++) outcome(fetch(A))
    await pass(50)
    refuse!(refusal({ 'retry-after': '3' }))
    await pass(2900)
    expect(at()).toEqual([0])
    outcome(fetch(B))
    await pass(2000)
    expect(at().slice(0, 3)).toEqual([0, 2950, expect.closeTo(3050, -2)])
    expect(at()).toHaveLength(5)
  })

  it('take a permit before the last turn', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const [narrow, wide] = [limiterOf('narrow', 1, 1), limiterOf('wide', 100)]
    outcome(open({ limiter: [narrow, wide], key, semaphore }, () => new Promise(() => {})).fetch(B))
    const { fetch } = open({ limiter: [narrow, wide], key, semaphore })
    outcome(fetch(A))
    await pass(5)
    expect((await narrow.peek('/a')).remaining).toBe(0)
    expect((await wide.peek('account')).remaining).toBe(99)
  })

  it('bound a queue too, whose calls name their keys', async () => {
    const queue = createQueue({ limiter: [limiterOf('narrow', 10), limiterOf('wide', 2, 1)] })
    const began: string[] = []
    const start = performance.now()
    const add = (name: string) =>
      outcome(
        queue.run(() => began.push(`${name} ${Math.round(performance.now() - start)}`), {
          key: [name, 'account'],
        }),
      )
    for (const name of 'abc') add(name)
    await pass(2000)
    expect(began).toEqual(['a 0', 'b 500', 'c 1000'])
    await expect(queue.run(() => {}, { key: ['a', 'b', 'c'] })).rejects.toMatchObject({ code: 'INVALID_KEY' })
  })

  it.each([[[]], [[{}]], [[undefined]]])('of %j are refused', (limiter) => {
    expect(() => limitFetch(fetch, { limiter: limiter as never })).toThrow(
      'limiter must be made by createLimiter(), or a list of up to 16',
    )
  })
})
