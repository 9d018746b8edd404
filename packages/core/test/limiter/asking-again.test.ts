import { outcome } from '@sluice/harness/figures'
import { RemoteStore } from '@sluice/harness/stores'
import {
  createLimiter,
  type DecisionEvent,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '../../src/index.js'

/** Timers and the clock of this file are Jest's: nothing sleeps. */
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
const clock = (): number => Date.now() * 1000
const reserving = (options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({
    name: 'test',
    policies: [fixedWindow({ limit: 1, window: '1d' })],
    store: memoryStore({ clock }),
    reservations: {},
    ...options,
  })

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

/** Both calls that wait for units of a limiter that reserves. */
const CALLS = {
  acquire: (limiter: Limiter, options: object) => limiter.acquire('k', options),
  reserve: (limiter: Limiter, options: object) => limiter.reserve('k', { ttl: '1h', ...options }),
}
const each = Object.entries(CALLS)
const STORES = {
  memory: () => memoryStore({ clock }),
  'a store elsewhere': () => new RemoteStore(clock, { maxAge: 1_000_000, maxKeys: 100 }, true),
}

describe.each(each)('%s that asks again', (_, call) => {
  describe.each(Object.entries(STORES))('of %s', (_name, store) => {
    it('counts for a penalty as one call that is refused, and as none where it passes', async () => {
      const limiter = reserving({ store: store(), penalty: { after: 2, block: '10m' } })
      const held = (await limiter.reserve('k', { ttl: '2500ms' })).reservation!
      const early = outcome(call(limiter, { maxWait: '1500ms' }))
      const late = outcome(call(limiter, { maxWait: '5s' }))
      await pass(1500)
      expect(early.value).toMatchObject({ allowed: false, reason: 'limit', waitMs: 1500 })
      await pass(1000)
      expect(late.value).toMatchObject({ allowed: true, waitMs: 2500 })
      expect(held.isSettled).toBe(false)
      expect(await limiter.consume('k')).toMatchObject({ reason: 'limit' })
      expect(await limiter.peek('k', { cost: 0 })).toMatchObject({ reason: 'blocked' })
    })

    it('waits also where a denial is remembered', async () => {
      const limiter = reserving({ store: store() })
      const { reservation } = await limiter.reserve('k', { ttl: '1h' })
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 })
      const waiting = outcome(call(limiter, { maxWait: '5s' }))
      await pass(500)
      await reservation!.release()
      await pass(500)
      expect(waiting.value).toMatchObject({ allowed: true, waitMs: 1000 })
    })

    it('rejects as soon as its limiter is closed, and is counted as waiting until then', async () => {
      const limiter = reserving({ store: store(), policies: [slidingLog({ limit: 1, window: '1500ms' })] })
      await limiter.consume('k')
      const waiting = outcome(call(limiter, { maxWait: '1h' }))
      await pass(22)
      expect(limiter.waiting).toBe(1)
      void limiter.close()
      await pass(0)
      expect(waiting.error).toMatchObject({ code: 'CLOSED', message: 'the limiter is closed' })
      expect(limiter.waiting).toBe(0)
    })

    it('does not wait in shadow mode', async () => {
      const limiter = reserving({ store: store(), enforce: false })
      await limiter.reserve('k', { ttl: '1h' })
      const decided = outcome(call(limiter, { maxWait: '2s' }))
      await pass(0)
      expect(decided.value).toMatchObject({ allowed: true, wouldDeny: true, waitMs: 0 })
    })
  })

  it('asks again at the next end, each second, and not twice within one', async () => {
    const store = new RemoteStore(clock, undefined, true)
    const limiter = reserving({ store, policies: [fixedWindow({ limit: 3, window: '1d' })] })
    for (const ttl of [1200, 1300, 1400]) await limiter.reserve('k', { ttl })
    const before = store.arrived.length
    const waiting = outcome(call(limiter, { cost: 3, maxWait: '5s' }))
    const asked: number[] = []
    for (let ms = 0; waiting.value === undefined; ms += 100) {
      if (store.arrived.length > before + asked.length) asked.push(ms)
      await pass(100)
    }
    expect(asked).toEqual([0, 1000, 1200])
    expect(waiting.value).toMatchObject({ allowed: true, waitMs: 2200 })
  })

  it('rejects as soon as its store is closed', async () => {
    const store = memoryStore({ clock })
    const limiter = reserving({ store, policies: [slidingLog({ limit: 1, window: '1500ms' })] })
    await limiter.consume('k')
    const waiting = outcome(call(limiter, { maxWait: '1h' }))
    await pass(22)
    await store.close()
    await pass(0)
    expect(waiting.error).toMatchObject({ code: 'CLOSED', message: 'the store is closed' })
    expect(jest.getTimerCount()).toBe(0)
  })

  it.each(['abort', 'close'] as const)('gives back what comes after its %s', async (end) => {
    const store = new RemoteStore(clock, undefined, true)
    const open = () => reserving({ store, onStoreError: 'throw', deadline: '10s' })
    const [limiter, other] = [open(), open()]
    const controller = new AbortController()
    store.holdReplies()
    const left = outcome(call(limiter, { signal: controller.signal }))
    await pass(30)
    if (end === 'abort') controller.abort(new Error('gone'))
    else void limiter.close()
    await pass(0)
    expect(left.error).toMatchObject(end === 'abort' ? { message: 'gone' } : { code: 'CLOSED' })
    store.recover()
    await pass(0)
    expect(await other.peek('k')).toMatchObject({ allowed: true, remaining: 1 })
    expect((await other.peek('k')).policies[0]!.held).toBe(0)
  })

  it('says how long it waited for a store elsewhere', async () => {
    const store = new RemoteStore(clock, undefined, true)
    const limiter = reserving({ store, onStoreError: 'throw', deadline: '10s' })
    const events: DecisionEvent[] = []
    limiter.on('decision', (event) => events.push(event))
    store.holdReplies()
    const decided = outcome(call(limiter, {}))
    await pass(70)
    store.recover()
    await pass(0)
    expect(decided.value?.allowed).toBe(true)
    expect(events).toMatchObject([{ storeMs: 70 }])
  })
})

it.each([
  ['acquire', '4s', 2],
  ['acquire', '5s', 2],
  ['reserve', '4s', 2],
] as const)(
  'counts one refusal of each call of %s that loses a race for a unit, within %s',
  async (name, maxWait, refused) => {
    const store = new RemoteStore(clock, undefined, true)
    const limiter = reserving({ store, penalty: { after: refused + 2, block: '10m' } })
    await limiter.reserve('k', { ttl: '2500ms' })
    const calls = [1, 2, 3].map(() => outcome(CALLS[name](limiter, { maxWait })))
    await pass(5000)
    expect(calls.map(({ value }) => value?.allowed)).toEqual([true, false, false])
    const isBlocked = async () => (await limiter.peek('k', { cost: 0 })).reason === 'blocked'
    await limiter.consume('k')
    expect(await isBlocked()).toBe(false)
    await limiter.consume('k')
    expect(await isBlocked()).toBe(true)
  },
)
