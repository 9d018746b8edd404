import { FakeClock } from '@sluice/testing'
import { RemoteStore } from '@sluice/harness/stores'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type LimiterOptions,
  memoryStore,
} from '../../src/index.js'
import type { LimiterEvents } from '../../src/index.js'
import { guard, keyspaceOver, type Store, type Update } from '../../src/stores/authoring.js'

const HOUR = 3_600_000
const policies = [fixedWindow({ limit: 10, window: '1h', name: 'hourly' })]

let clock: FakeClock
beforeEach(() => {
  clock = new FakeClock()
})

/** A limiter that nears 0.8 and all of ten units an hour, and what it has reported: shares, or whole events. */
function open(options: Partial<LimiterOptions> = {}) {
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ name: 'api', policies, store, nearing: [0.8, 1], ...options })
  const events: LimiterEvents['nearing'][] = []
  limiter.on('nearing', (event) => void events.push(event))
  return { limiter, events, shares: () => events.splice(0).map(({ share }) => share) }
}

describe("the 'nearing' event", () => {
  it('comes with the charge that crosses a share, with all that it names', async () => {
    clock.pass(HOUR / 4 - ((clock.now() / 1000) % HOUR) + HOUR)
    const { limiter, events } = open()
    await limiter.consume('ann', { cost: 7 })
    expect(events).toEqual([])
    await limiter.consume('ann')
    const payload = {
      limiter: 'api',
      key: 'ann',
      policy: 'hourly',
      resetAfterMs: (HOUR * 3) / 4,
      decidedBy: 'memory',
    }
    expect(events).toEqual([{ type: 'nearing', share: 0.8, ...payload }])
    await limiter.consume('ann', { cost: 2 })
    expect(events.slice(1)).toEqual([{ type: 'nearing', share: 1, ...payload }])
  })

  it('comes once in each window, for each share that one charge crosses', async () => {
    const { limiter, shares } = open()
    await limiter.consume('k', { cost: 10 })
    await limiter.consume('k')
    expect(shares()).toEqual([0.8, 1])
    clock.pass(HOUR)
    for (let i = 0; i < 12; i++) await limiter.consume('k')
    expect(shares()).toEqual([0.8, 1])
  })

  it('comes with a reservation that crosses a share, and again after it has ended', async () => {
    const { limiter, shares } = open({ reservations: {} })
    const reserve = () => limiter.reserve('k', { cost: 8, ttl: '1m' })
    await reserve()
    expect(shares()).toEqual([0.8])
    expect((await reserve()).allowed).toBe(false)
    clock.pass(60_000)
    await reserve()
    expect(shares()).toEqual([0.8])
  })

  it('comes again after a giving back below the share, also by settle, which may cross it too', async () => {
    const { limiter, shares } = open()
    const decision = await limiter.consume('k', { cost: 8 })
    await decision.settle(2)
    expect(shares()).toEqual([0.8])
    const other = await limiter.consume('k', { cost: 1 })
    await other.settle(20)
    expect(shares()).toEqual([0.8, 1])
    await limiter.refund('k', { cost: 17 })
    await limiter.charge('k', { cost: 5 })
    expect(shares()).toEqual([0.8])
  })

  it('comes of no call that charges nothing: denied, read, or with another part denied', async () => {
    const { limiter, shares } = open()
    const full = createLimiter({ policies: [gcra({ limit: 1, window: '1h' })] })
    await limiter.consume('k', { cost: 7 })
    await full.consume('k')
    await consumeAll([
      { limiter, key: 'k', cost: 3 },
      { limiter: full, key: 'k' },
    ])
    await limiter.consume('k', { cost: 4 })
    await limiter.peek('k', { cost: 3 })
    await limiter.consume('k', { cost: 0 })
    expect(shares()).toEqual([])
    await consumeAll([
      { limiter, key: 'k' },
      { limiter: open().limiter, key: 'k' },
    ])
    expect(shares()).toEqual([0.8])
    // What counts is as after a charge that crosses.
    await consumeAll([
      { limiter, key: 'k' },
      { limiter: full, key: 'k' },
    ])
    expect(shares()).toEqual([])
  })

  it('comes in shadow mode of what is charged there', async () => {
    const { limiter, shares } = open({ enforce: false })
    await limiter.consume('k', { cost: 9 })
    await limiter.consume('k', { cost: 9 })
    expect(shares()).toEqual([0.8])
  })

  it('comes when a turn is booked, also of one that is given up', async () => {
    const { limiter, shares } = open()
    await limiter.acquire('k', { cost: 9 })
    expect(shares()).toEqual([0.8])
    const gone = new AbortController()
    const turn = limiter.acquire('k', { cost: 8, maxWait: '2h', signal: gone.signal })
    await Promise.resolve()
    expect(shares()).toEqual([0.8])
    gone.abort(new Error('gone'))
    await expect(turn).rejects.toThrow('gone')
    await limiter.close()
  })

  it('counts each policy that has windows by itself, and under the numbers of each call', async () => {
    const daily = fixedWindow({ limit: 5, window: '1d', name: 'daily' })
    const { limiter, events } = open({ policies: [gcra({ limit: 100, window: '1s' }), ...policies, daily] })
    await limiter.consume('k', { cost: 5 })
    expect(events.map(({ policy, share }) => [policy, share])).toEqual([
      ['daily', 0.8],
      ['daily', 1],
    ])
    const plan = open()
    await plan.limiter.consume('k', { cost: 8, policies: [fixedWindow({ limit: 100, window: '1h' })] })
    expect(plan.shares()).toEqual([])
    await plan.limiter.consume('k', { cost: 2 })
    expect(plan.shares()).toEqual([1])
  })

  it('comes of no call on a key that is exempt, however it is charged', async () => {
    const { limiter, shares } = open()
    await limiter.override('k', { exempt: true, until: '1h', reason: 'a test', by: 'us' })
    await limiter.consume('k', { cost: 9 })
    await limiter.acquire('k', { cost: 9 })
    await consumeAll([
      { limiter, key: 'k', cost: 9 },
      { limiter: open().limiter, key: 'k' },
    ])
    await limiter.charge('k', { cost: 9 })
    expect(shares()).toEqual([])
  })

  it('takes shares as they are meant, not as they are rounded', async () => {
    const { limiter, events } = open({ policies: [fixedWindow({ limit: 100, window: '1h' })], nearing: 0.07 })
    await limiter.consume('k', { cost: 7 })
    expect(events).toHaveLength(1)
  })

  it('cannot be asked for without windows, or at other shares', () => {
    const tiers = [[gcra({ limit: 1, window: '1s' })]]
    for (const options of [{ tiers }, { policies: tiers[0]! }])
      expect(() => open(options)).toThrow(expect.objectContaining({ code: 'INVALID_NEARING' }))
    for (const nearing of [0, 1.1, NaN, '0.8', [], [0.5, 2], [1, 'x']])
      expect(() => open({ nearing: nearing as number })).toThrow(/nearing must be a number above 0/)
  })

  it('says whose count it was: of a lease all that is taken in advance, once', async () => {
    const store = new RemoteStore(clock.now)
    const many = [fixedWindow({ limit: 100, window: '1h' })]
    const each = Array.from({ length: 40 }, (_, i) => (i + 1) / 100)
    const { limiter, events } = open({
      policies: many,
      store,
      leases: { ttl: '200ms', size: 10 },
      nearing: each,
    })
    for (let i = 0; i < 40; i++) await limiter.consume('k')
    expect(events.map(({ share }) => share)).toEqual(each)
    expect(events.at(-1)).toMatchObject({ decidedBy: 'lease' })
    await limiter.close()
  })

  it("says in an outage that the count is this process's own, by its part of the limit, and settles it there", async () => {
    const store = new RemoteStore(clock.now)
    const onStoreError = { mode: 'local', share: 2 } as const
    const { limiter, events } = open({ store, onStoreError })
    const seen = () => events.splice(0).map(({ decidedBy, share }) => [decidedBy, share])
    await limiter.consume('k', { cost: 7 })
    store.fail('STORE_OOM')
    const first = await limiter.consume('k', { cost: 3 })
    expect([first.degraded, seen()]).toEqual(['oom', []])
    await limiter.consume('k')
    expect(seen()).toEqual([['local', 0.8]])
    await first.settle(4)
    expect(seen()).toEqual([['local', 1]])
    expect((await limiter.acquire('turn', { cost: 5 })).degraded).toBe('oom')
    expect(seen()).toEqual([
      ['local', 0.8],
      ['local', 1],
    ])
    store.recover()
    clock.pass(1000)
    await limiter.consume('k')
    expect(seen()).toEqual([['store', 0.8]])
    await limiter.close()
  })

  it.each(['allow', 'deny'] as const)(
    "comes of no call that the mode '%s' decides, as nothing is counted",
    async (mode) => {
      const store = new RemoteStore(clock.now)
      const { limiter, shares } = open({ store, onStoreError: mode })
      store.fail('STORE_OOM')
      await limiter.consume('k', { cost: 9 })
      expect(shares()).toEqual([])
      await limiter.close()
    },
  )

  it('comes once of a charge whose update of bytes is made again', async () => {
    const states = new Map<string, Uint8Array>()
    const others: (() => void)[] = []
    // As a database does that finds the row changed: the first try is thrown away.
    const update: Update = async (id, change) => {
      await Promise.resolve()
      const first = change(states.get(id), clock.now())
      const other = others.shift()
      other?.()
      const { result, state } = other ? change(states.get(id), clock.now()) : first
      if (state) states.set(id, state)
      return result
    }
    const store: Store = {
      guard,
      keyspace: (...of) => keyspaceOver(update, ...of),
      now: clock.now,
      close() {},
    }
    const { limiter, shares } = open({ store })
    const decision = await limiter.consume('k', { cost: 5 })
    const [[id, half]] = [...states] as [[string, Uint8Array]]
    await limiter.consume('k', { cost: 2 })
    const more = states.get(id)!
    states.set(id, half)
    // Both tries cross 0.8, of other counts.
    others.push(() => states.set(id, more))
    await decision.settle(8)
    expect(shares()).toEqual([0.8, 1])
    // The first try would have crossed 0.8 anew; the one that stands does not.
    await limiter.refund('k', { cost: 10 })
    const [none, full] = [states.get(id)!, await limiter.charge('k', { cost: 9 }).then(() => states.get(id)!)]
    expect(shares()).toEqual([0.8])
    states.set(id, none)
    others.push(() => states.set(id, full))
    await limiter.charge('k', { cost: 1 })
    expect(shares()).toEqual([1])
    await limiter.close()
  })
})
