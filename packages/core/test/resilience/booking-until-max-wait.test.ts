import { outcome } from '@sluice/harness/figures'
import {
  type AcquireOptions,
  createLimiter,
  type FailureMode,
  gcra,
  type Limiter,
  StoreError,
  type StoreErrorCode,
} from '../../src/index.js'
import { RemoteStore } from '@sluice/harness/stores'

/** Ten a second, one at a time: each call that waits comes 100 ms after the one before. */
const policies = [gcra({ limit: 10, window: '1s', burst: 1 })]

let store: RemoteStore
beforeEach(() => {
  jest.useFakeTimers()
  store = new RemoteStore(() => performance.now() * 1000)
})
afterEach(() => jest.useRealTimers())

const open = (onStoreError: FailureMode = 'throw', enforce = true): Limiter =>
  createLimiter({ name: 'api', policies, store, onStoreError, enforce })

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

describe('a wait while the store does not answer', () => {
  it.each(['throw', 'deny'] as const)(
    "goes on listening for the booking it sent, under '%s'",
    async (mode) => {
      const limiter = open(mode)
      store.stop()
      const waits = [1, 2, 3].map(() => outcome(limiter.acquire('k', { maxWait: '20s' })))
      await pass(300)
      expect(waits).toEqual([{}, {}, {}])
      store.recover()
      await pass(200)
      expect(waits.map(({ value }) => value)).toEqual([
        expect.objectContaining({ allowed: true, degraded: undefined, waitMs: 300 }),
        expect.objectContaining({ allowed: true, degraded: undefined, waitMs: 400 }),
        expect.objectContaining({ allowed: true, degraded: undefined, waitMs: 500 }),
      ])
      expect(store.count('book')).toBe(3)
    },
  )

  it.each(['local', 'allow'] as const)(
    "is decided after the deadline where something else can, '%s'",
    async (mode) => {
      const limiter = open(mode)
      store.stop()
      const wait = outcome(limiter.acquire('k', { maxWait: '20s' }))
      await pass(50)
      expect(wait.value).toMatchObject({ allowed: true, degraded: 'timeout' })
    },
  )

  it('is decided at the deadline in shadow mode', async () => {
    const limiter = open('deny', false)
    store.stop()
    const wait = outcome(limiter.acquire('k', { maxWait: '20s' }))
    await pass(50)
    expect(wait.value).toMatchObject({ allowed: true, wouldDeny: true, degraded: 'timeout' })
  })

  it('ends at maxWait with why the store is not connected, where it knows', async () => {
    Object.assign(store, { trouble: () => new StoreError('STORE_UNAVAILABLE', 'connect ECONNREFUSED') })
    const limiter = open()
    store.stop()
    const wait = outcome(limiter.acquire('k', { maxWait: '1s' }))
    await pass(1000)
    expect(wait.error).toMatchObject({ code: 'STORE_UNAVAILABLE', sent: true })
  })

  it('ends at maxWait, and gives back a booking that is answered later', async () => {
    const limiter = open()
    store.stop()
    const wait = outcome(limiter.acquire('k', { maxWait: '1s' }))
    await pass(999)
    expect(wait).toEqual({})
    await pass(1)
    expect(wait.error).toMatchObject({ code: 'STORE_TIMEOUT', sent: true })
    store.recover()
    await pass(0)
    expect(store.count('book')).toBe(1)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it("is denied at maxWait under 'deny'", async () => {
    const limiter = open('deny')
    store.stop()
    const wait = outcome(limiter.acquire('k', { maxWait: '1s' }))
    await pass(1000)
    expect(wait.value).toMatchObject({ allowed: false, degraded: 'timeout', reason: 'degraded' })
  })

  it('is denied if its turn has become later than maxWait, and gives the place back', async () => {
    const limiter = open()
    await limiter.acquire('k')
    store.stop()
    const waits = [1, 2].map(() => outcome(limiter.acquire('k', { maxWait: '300ms' })))
    await pass(250)
    store.recover()
    await pass(50)
    expect(waits[0]!.value).toMatchObject({ allowed: true, waitMs: 250 })
    expect(waits[1]!.value).toMatchObject({ allowed: false, reason: 'limit' })
    await pass(50)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it('counts as a failure for the circuit, and sends nothing until the store answers', async () => {
    const limiter = open()
    store.stop()
    for (let i = 0; i < 30; i++) {
      outcome(limiter.acquire(`k${i}`, { maxWait: '20s' }))
      await pass(10)
    }
    expect(() => limiter.decide('k')).toThrow(expect.objectContaining({ code: 'STORE_TIMEOUT' }))
    const sent = store.count('book')
    expect(sent).toBeLessThan(30)
    await pass(2000)
    expect(store.count('book')).toBe(sent)
    const late = outcome(limiter.acquire('late', { maxWait: '20s' }))
    await pass(1000)
    store.recover()
    await pass(200)
    expect(late.value).toMatchObject({ allowed: true, degraded: undefined })
    expect(store.count('book')).toBe(31)
    expect(store.maxWaits.at(-1)).toBeLessThanOrEqual(19_000_000)
  })

  it('waits for room among the calls in flight', async () => {
    const limiter = open()
    store.stop()
    const waits = Array.from({ length: 1100 }, (_, i) =>
      outcome(limiter.acquire(`k${i}`, { maxWait: '20s' })),
    )
    await pass(300)
    expect(store.arrived).toHaveLength(1000)
    store.recover()
    await pass(0)
    expect(store.arrived).toHaveLength(1100)
    expect(waits.filter(({ value }) => value?.allowed)).toHaveLength(1100)
  })
})

describe('a caller that leaves while its booking is in flight', () => {
  it.each([
    ['charges at once', 0],
    ['lies ahead', 1],
  ])('is told at once, and gives back what %s', async (_, before) => {
    const limiter = open()
    for (let i = 0; i < before; i++) await limiter.acquire('k')
    store.stop()
    const controller = new AbortController()
    const wait = outcome(limiter.acquire('k', { maxWait: '20s', signal: controller.signal }))
    await pass(100)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(wait.error).toEqual(new Error('gone'))
    store.recover()
    await pass(0)
    expect(store.count('book')).toBe(before + 1)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it('leaves nothing behind by an abort before the booking was sent', async () => {
    const limiter = open()
    store.fail('STORE_LOADING')
    const controller = new AbortController()
    const wait = outcome(limiter.acquire('k', { maxWait: '20s', signal: controller.signal }))
    await pass(500)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(wait.error).toEqual(new Error('gone'))
    await pass(50) // the timer of a deadline runs out
    expect(jest.getTimerCount()).toBe(0)
    const sent = store.count('book')
    store.recover()
    await pass(5000)
    expect(store.count('book')).toBe(sent)
  })

  it.each([10, 100])('is rejected by close after %d ms, and leaves no timer', async (after) => {
    const limiter = open()
    store.stop()
    const wait = outcome(limiter.acquire('k', { maxWait: '20s' }))
    await pass(after)
    const closed = limiter.close()
    await pass(30)
    await closed
    expect(wait.error).toMatchObject({ code: 'CLOSED' })
    await pass(50)
    expect(jest.getTimerCount()).toBe(0)
    store.recover()
    await pass(0)
    expect(store.count('release')).toBe(1)
  })

  it('does not deafen a call that waits with the same signal, when its booking is answered', async () => {
    const leaving = open()
    const elsewhere = new RemoteStore(() => performance.now() * 1000)
    const staying = createLimiter({ name: 'api', policies, store: elsewhere })
    await staying.acquire('k')
    const controller = new AbortController()
    const { signal } = controller
    store.stop()
    outcome(leaving.acquire('k', { maxWait: '20s', signal }))
    await pass(0)
    void leaving.close()
    const wait = outcome(staying.acquire('k', { maxWait: '20s', signal }))
    await pass(0)
    store.recover()
    await pass(0)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(wait.error).toEqual(new Error('gone'))
  })
})

describe('a booking that is answered after the deadline', () => {
  const openCircuit = async (limiter: Limiter, options: AcquireOptions) => {
    for (let i = 0; i < 20; i++) {
      outcome(limiter.acquire(`k${i}`, options))
      await pass(10)
    }
    expect(() => limiter.decide('k')).toThrow(expect.objectContaining({ code: 'STORE_TIMEOUT' }))
  }

  it('is given back if maxWait is over, though the circuit is open', async () => {
    const limiter = open()
    store.stop()
    await openCircuit(limiter, { maxWait: '150ms' })
    await pass(150)
    store.recover()
    await pass(0)
    expect(store.count('book')).toBeGreaterThan(10)
    expect(store.count('release')).toBe(store.count('book'))
  })

  it('is given back if its turn has become later than maxWait, though the circuit is open', async () => {
    const limiter = open()
    await limiter.acquire('k')
    store.stop()
    const waits = [1, 2].map(() => outcome(limiter.acquire('k', { maxWait: '300ms' })))
    await openCircuit(limiter, { maxWait: '20s' })
    await pass(50)
    store.recover()
    await pass(0)
    expect(waits.map(({ value }) => value?.allowed)).toEqual([true, false])
    expect(store.count('cancel')).toBe(1)
  })

  it('is given back if its caller has left, though the circuit is open', async () => {
    const limiter = open()
    const controller = new AbortController()
    store.stop()
    await openCircuit(limiter, { maxWait: '20s', signal: controller.signal })
    controller.abort(new Error('gone'))
    store.recover()
    await pass(0)
    expect(store.count('book')).toBeGreaterThan(10)
    expect(store.count('release')).toBe(store.count('book'))
  })

  it('is given back after the next stall if there was no room before it', async () => {
    const limiter = open()
    store.stop()
    for (let i = 0; i < 1000; i++) outcome(limiter.acquire(`late ${i}`, { maxWait: '100ms' }))
    for (let i = 0; i < 500; i++) outcome(limiter.acquire(`patient ${i}`, { maxWait: '20s' }))
    await pass(150)
    store.recover()
    store.stop()
    await pass(200)
    store.recover()
    await pass(200)
    expect([store.count('book'), store.count('release')]).toEqual([1500, 1000])
  })

  it('holds up no close once the deadline of its giving back is over', async () => {
    const limiter = open()
    const controller = new AbortController()
    store.stop()
    outcome(limiter.acquire('k', { maxWait: '20s', signal: controller.signal }))
    await pass(100)
    controller.abort(new Error('gone'))
    store.recover()
    store.stop()
    await pass(50)
    expect(store.count('release')).toBe(1)
    let isClosed = false
    void limiter.close().then(() => (isClosed = true))
    await pass(0)
    expect(isClosed).toBe(true)
  })
})

describe('a caller that leaves while its place is confirmed', () => {
  /** A call at its turn, after a wait that is long enough to be confirmed. The store's replies are on their way. */
  const atItsTurn = async (signal?: AbortSignal, before?: (limiter: Limiter) => Promise<unknown>) => {
    const slow = [gcra({ limit: 2, window: '1s', burst: 1 })]
    const limiter = createLimiter({
      name: 'api',
      policies: slow,
      store,
      onStoreError: 'throw',
      deadline: '1s',
    })
    await limiter.acquire('k')
    const wait = outcome(limiter.acquire('k', { maxWait: '20s', ...(signal && { signal }) }))
    await pass(400)
    await before?.(limiter)
    store.holdReplies()
    await pass(100)
    expect([wait, store.count('confirm')]).toEqual([{}, 1])
    return { limiter, wait }
  }
  const replies = async () => {
    store.recover()
    await pass(0)
    return { booked: store.count('book'), cancelled: store.count('cancel') }
  }

  it('rejects with the reason of the abort, and gives the place back', async () => {
    const controller = new AbortController()
    const { wait } = await atItsTurn(controller.signal)
    controller.abort(new Error('gone'))
    expect(await replies()).toEqual({ booked: 2, cancelled: 1 })
    expect(wait.error).toEqual(new Error('gone'))
  })

  it('is rejected by close, and gives the place back', async () => {
    const { limiter, wait } = await atItsTurn()
    void limiter.close()
    expect(await replies()).toEqual({ booked: 2, cancelled: 1 })
    expect(wait.error).toMatchObject({ code: 'CLOSED' })
  })

  it('gives a place that is held back once, and books no other', async () => {
    const { limiter, wait } = await atItsTurn(undefined, (of) => of.hold('k', '5s'))
    void limiter.close()
    expect(await replies()).toEqual({ booked: 2, cancelled: 1 })
    expect(wait.error).toMatchObject({ code: 'CLOSED' })
  })
})

describe('a wait whose booking fails', () => {
  it.each(['STORE_LOADING', 'STORE_BUSY', 'STORE_OOM', 'STORE_READONLY'] as const)(
    'is sent again once the store answers, after %s',
    async (code) => {
      const limiter = open()
      store.fail(code)
      const wait = outcome(limiter.acquire('k', { maxWait: '20s' }))
      await pass(1000)
      expect(wait).toEqual({})
      store.recover()
      await pass(1500)
      expect(wait.value).toMatchObject({ allowed: true, degraded: undefined })
      expect((await limiter.peek('k')).remaining).toBe(1)
    },
  )

  it.each([
    ['0', 0],
    ['what is left of it', 300],
  ])('is sent again with %s as maxWait, also where the deadline is longer', async (_, maxWait) => {
    const slow = [gcra({ limit: 1, window: '1s', burst: 1 })]
    const limiter = createLimiter({
      name: 'api',
      policies: slow,
      store,
      onStoreError: 'throw',
      deadline: '2s',
    })
    await limiter.acquire('k')
    await pass(0.4567)
    store.fail('STORE_READONLY')
    const wait = outcome(limiter.acquire('k', { maxWait }))
    await pass(10.4567)
    store.recover()
    await pass(190)
    expect(wait.value).toMatchObject({ allowed: false, reason: 'limit' })
    const [, first, second] = store.maxWaits
    expect(first).toBe(maxWait * 1000)
    expect(second).toBeLessThanOrEqual(Math.max(0, first! - 10_456))
    expect(Number.isInteger(second)).toBe(true)
  })

  it('says that it may have been carried out where its last attempt is on its way at maxWait', async () => {
    const limiter = createLimiter({ name: 'api', policies, store, onStoreError: 'throw', deadline: '390ms' })
    store.fail('STORE_OOM')
    const wait = outcome(limiter.acquire('k', { maxWait: 400 }))
    await pass(0)
    store.recover()
    await limiter.peek('k')
    store.stop()
    await pass(400)
    expect(store.count('book')).toBe(2)
    expect(wait.error).toMatchObject({ code: 'STORE_TIMEOUT', sent: true })
  })

  it('rejects with the failure at maxWait', async () => {
    store.fail('STORE_OOM')
    const wait = outcome(open().acquire('k', { maxWait: '2s' }))
    await pass(1999)
    expect(wait).toEqual({})
    await pass(1)
    expect(wait.error).toMatchObject({ code: 'STORE_OOM' })
  })

  it.each<StoreErrorCode>(['STORE_FORBIDDEN', 'STORE_ERROR', 'STORE_TIMEOUT', 'CLIENT_MISSING'])(
    'is final after %s',
    async (failure) => {
      store.fail(failure)
      const wait = outcome(open().acquire('k', { maxWait: '20s' }))
      await pass(0)
      expect(wait.error).toMatchObject({ code: failure })
      store.recover()
      await pass(5000)
      expect(store.count('book')).toBe(1)
    },
  )

  it('is booked once more for each broken connection, once the store answers', async () => {
    const limiter = open()
    store.fail('STORE_UNAVAILABLE')
    const wait = outcome(limiter.acquire('k', { maxWait: '20s' }))
    await pass(3000)
    expect(store.count('book')).toBe(1)
    store.recover()
    await pass(300)
    expect(wait.value).toMatchObject({ allowed: true })
    expect(store.count('book')).toBe(2)
  })

  it('is rejected when the store is closed meanwhile', async () => {
    store.fail('STORE_LOADING')
    const wait = outcome(open().acquire('k', { maxWait: '20s' }))
    await pass(100)
    store.close()
    await pass(25)
    expect(wait.error).toMatchObject({ code: 'CLOSED' })
    await pass(50)
    expect(jest.getTimerCount()).toBe(0)
  })
})
