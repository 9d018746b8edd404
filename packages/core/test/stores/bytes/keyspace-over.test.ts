import {
  createLimiter,
  createSemaphore,
  fixedWindow,
  gcra,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { type Answer, guard, keyspaceOver, type Notice, type Store, type Update } from '@sluice/core/store'

describe('a keyspace over bytes', () => {
  const HOUR = 3_600_000_000
  let now: number
  let states: Map<string, Uint8Array>
  let expiries: Map<string, number>
  let writes: number
  let notices: Notice[]
  beforeEach(() => {
    now = 1_800_000_000_000_000
    states = new Map()
    expiries = new Map()
    writes = 0
    notices = []
  })
  const update: Update = (id, change) => {
    const before = states.get(id)
    const { result, state, expiresAt } = change(before, now)
    if (state === before) return result
    writes++
    if (state) states.set(id, state)
    else states.delete(id)
    expiries.set(id, expiresAt)
    return result
  }
  const open = (name: string, ...policies: Policy[]) =>
    keyspaceOver(update, name, policies, (notice) => notices.push(notice))
  const five = () => gcra({ limit: 5, window: '1h' })
  const consume = (keyspace: ReturnType<typeof open>, key = 'a', cost = 1) =>
    keyspace.decide('consume', key, cost, 0) as Answer

  it('has one id for a name, a list of shapes and a key, which no other has', () => {
    consume(open('x', five()), 'a')
    consume(open('x', gcra({ limit: 50, window: '1h' })), 'a')
    expect(states.size).toBe(1)
    consume(open('x', gcra({ limit: 5, window: '2h' })), 'a')
    consume(open('x', five(), fixedWindow({ limit: 1, window: '1m' })), 'a')
    consume(open('x"', five()), 'a')
    consume(open('x', five()), ']a')
    expect(states.size).toBe(5)
  })

  const openReserving = () => {
    const report = (notice: Notice) => notices.push(notice)
    const policies = [fixedWindow({ limit: 5, window: '1d' })]
    return keyspaceOver(update, 'x', policies, report, undefined, { max: 9 })
  }

  it('says of a reservation that is lost with an older copy of the state that it is late', () => {
    const keyspace = openReserving()
    const reserve = (id: number) => {
      const call = { key: 'a', cost: 1, id, ttl: 60_000_000, atEnd: 0 }
      return {
        key: 'a',
        id,
        decidedAt: (keyspace.reservations!.reserve(call) as Answer).now,
        end: now + call.ttl,
      }
    }
    reserve(1)
    const older = new Map(states)
    now += 1000
    const lost = reserve(2)
    states = older
    for (const units of [3, 4])
      expect(keyspace.reservations!.change({ ...lost, kind: 'settle', units })).toMatchObject({
        state: 'late',
        effect: 3,
      })
  })

  it('keeps marks of reservations that were settled no longer than these would have lasted', () => {
    const policies = [fixedWindow({ limit: 10_000, window: '1d' })]
    const keyspace = keyspaceOver(update, 'x', policies, () => {}, undefined, { max: 1000 })
    const [id, ttl, most] = [1, 1_000_000, { bytes: 0 }]
    for (let i = 0; i < 20 * 70; i++, now += 50_000) {
      const { now: decidedAt } = keyspace.reservations!.reserve({
        key: 'a',
        cost: 2,
        id: id + i,
        ttl,
        atEnd: 0,
      }) as Answer
      const made = { key: 'a', id: id + i, decidedAt, end: decidedAt + ttl }
      void keyspace.reservations!.change({ ...made, kind: 'settle', units: 1 })
      most.bytes = Math.max(most.bytes, [...states.values()][0]!.length)
    }
    // Marks go together, once a ttl.
    const [cells, entries] = [10 + 3 + 4, 7 * (2 * 20 + 1)]
    expect(most.bytes).toBeLessThanOrEqual(8 * (cells + entries))
  })

  it('writes nothing for a peek or a denial that finds reservations ended, which the next charge gives back', () => {
    const keyspace = openReserving()
    void keyspace.reservations!.reserve({ key: 'a', cost: 3, id: 1, ttl: 1_000_000, atEnd: 0 })
    now += 2_000_000
    const bytes = [...states.values()][0]
    for (let i = 0; i < 2; i++) expect((keyspace.decide('peek', 'a', 5, 0) as Answer).reason).toBeUndefined()
    expect((keyspace.decide('consume', 'a', 6, 0) as Answer).reason).toBe('cost')
    expect([writes, [...states.values()]]).toEqual([1, [bytes]])
    expect((keyspace.decide('consume', 'a', 5, 0) as Answer).reason).toBeUndefined()
    expect(writes).toBe(2)
  })

  it('writes nothing for a denial, a peek, a cost of 0 or a correction that has nothing to correct', () => {
    const keyspace = open('x', five())
    expect(keyspace.correct({ kind: 'refund', key: 'a', cost: 1 })).toBe(0)
    void keyspace.decide('peek', 'a', 1, 0)
    consume(keyspace, 'a', 0)
    expect([writes, states.size]).toEqual([0, 0])
    consume(keyspace, 'a', 5)
    expect(consume(keyspace).reason).toBe('limit')
    expect(consume(keyspace, 'a', 6).reason).toBe('cost')
    expect(writes).toBe(1)
  })

  it('says that state expires a second after it is full again at the smallest limit, or its block is over', () => {
    const keyspace = open('x', five())
    const ends = () => ([...expiries.values()][0]! - now) / 1_000_000
    consume(keyspace, 'a', 5)
    expect(ends()).toBe(3601)
    open('x', gcra({ limit: 1, window: '1h', burst: 5 }))
    void keyspace.correct({ kind: 'refund', key: 'a', cost: 3 })
    expect(ends()).toBe(2 * 3600 + 1)
    void keyspace.correct({ kind: 'block', key: 'a', duration: 24 * HOUR })
    expect(ends()).toBe(24 * 3600 + 1)
    void keyspace.correct({ kind: 'reset', key: 'a' })
    expect(states.size).toBe(0)
  })

  it('keeps state that a smaller limit refuses for as long as it does, whatever is written later', () => {
    const ends = () => ([...expiries.values()][0]! - now) / 1_000_000
    const large = open('x', tokenBucket({ limit: 1000, window: '1h' }))
    consume(large, 'a', 1000)
    expect(ends()).toBe(3601)
    const small = open('x', tokenBucket({ limit: 10, window: '1h' }))
    const refused = consume(small)
    expect(refused).toMatchObject({ reason: 'limit', at: now + 99.1 * HOUR })
    expect([ends(), writes]).toEqual([100 * 3600 + 1, 2])
    now += HOUR
    expect(consume(small)).toMatchObject({ reason: 'limit', at: refused.at })
    expect(writes).toBe(2)
    void large.correct({ kind: 'refund', key: 'a', cost: 1000 })
    expect(ends()).toBe(99 * 3600 + 1)
  })

  it.each([
    ['no bytes', () => new Uint8Array()],
    ['a part of a state', (bytes: Uint8Array) => bytes.slice(0, -8)],
    ['bytes that are no numbers', (bytes: Uint8Array) => bytes.slice(0, -3)],
    ['a number that is none', (bytes: Uint8Array) => bytes.slice().fill(255, -8)],
    ['another format', (bytes: Uint8Array) => bytes.slice().fill(1, 0, 8)],
    ['more than a state', (bytes: Uint8Array) => new Uint8Array([...bytes, ...bytes])],
  ])('discards %s, and reports it when it writes', (_, broken) => {
    const keyspace = open('x', slidingLog({ limit: 2, window: '1h' }))
    consume(keyspace, 'a', 2)
    const [[id, bytes]] = [...states] as [[string, Uint8Array]]
    states.set(id, broken(bytes))
    expect((keyspace.decide('peek', 'a', 1, 0) as Answer).remaining).toBe(2)
    expect(notices).toEqual([])
    expect([consume(keyspace).remaining, consume(keyspace).remaining]).toEqual([1, 0])
    expect(notices).toEqual([{ event: 'healed', key: 'a' }])
  })

  describe.each<[string, () => Policy, [what: string, double: number, value: number][]]>([
    [
      'a debt',
      () => gcra({ limit: 10, window: '1s' }),
      [
        ['a last booking without end', 5, 1e300],
        ['a block without end', 6, 1e300],
        ['a hold without end', 7, 1e300],
        ['a beginning after the last write', 10, 2e15],
        ['a debt below nothing', 11, -1e15],
        ['a debt that outlives its state', 11, 1e13],
        ['a fraction of a debt', 11, 1_000_000.5],
        ['a debt of a time to come', 12, 2e15],
        ['a debt of the instant after the last write', 12, 1_800_000_000_000_002],
        ['a limit beyond exact numbers', 13, 1e16],
      ],
    ],
    [
      'a debt that drains by the millisecond',
      () => gcra({ limit: 10, window: '2h' }),
      [['a debt that outlives its state', 11, 1e9]],
    ],
    [
      'a debt of tokens that come at intervals',
      () => tokenBucket({ limit: 10, window: '1s', refill: 'interval' }),
      [
        ['tokens that outlive their state', 11, 1e6],
        ['a refill of a time to come', 12, 2e15],
        ['a refill of the instant after the last write', 12, 1_800_000_000_000_002],
      ],
    ],
    [
      'a count of a window',
      () => fixedWindow({ limit: 10, window: '1s' }),
      [
        ['a window to come', 11, 2e15],
        ['no beginning of a window', 11, 1_799_999_999_000_001],
      ],
    ],
    [
      'counts of buckets',
      () => slidingWindow({ limit: 10, window: '1s' }),
      [
        ['a bucket to come', 11, 2e10],
        ['a total that is not the sum of the counts', 12, 50],
      ],
    ],
    [
      'a log',
      () => slidingLog({ limit: 10, window: '1s' }),
      [
        ['an entry of a time to come', 13, 2e15],
        ['entries out of order', 13, 1],
      ],
    ],
  ])('discards %s that has', (_, policy, cases) => {
    it.each(cases)('%s', (_, double, value) => {
      const keyspace = open('x', policy())
      consume(keyspace)
      now += 1
      consume(keyspace)
      const [[id, bytes]] = [...states] as [[string, Uint8Array]]
      expect(consume(keyspace)).toMatchObject({ remaining: 7 })
      new DataView(bytes.buffer).setFloat64(8 * double, value, true)
      states.set(id, bytes)
      expect(consume(keyspace)).toMatchObject({ reason: undefined, remaining: 9 })
      expect(notices).toEqual([{ event: 'healed', key: 'a' }])
    })
  })

  it('keeps state whose booking, block and hold are as far away as they can be', () => {
    const YEAR = 365 * 24 * HOUR
    const keyspace = open('x', gcra({ limit: 1, window: '365d' }), slidingLog({ limit: 1, window: '365d' }))
    consume(keyspace)
    const { booking } = keyspace.decide('book', 'a', 1, YEAR) as Answer
    for (const kind of ['block', 'hold'] as const) void keyspace.correct({ kind, key: 'a', duration: YEAR })
    expect(keyspace.confirm(booking!)).toBe('held')
    expect(notices).toEqual([])
  })

  it('keeps counts whichever bucket is the newest', () => {
    const keyspace = open('x', slidingWindow({ limit: 100, window: '1s', buckets: 4 }))
    for (let bucket = 0; bucket < 10; bucket++, now += 250_000) consume(keyspace)
    expect([notices, consume(keyspace).remaining]).toEqual([[], 95]) // and the four buckets before
  })

  it('keeps tokens that are missing until the next refill', () => {
    const keyspace = open('x', tokenBucket({ limit: 10, window: '1h', refill: 'interval' }))
    consume(keyspace, 'a', 10)
    expect([consume(keyspace).reason, notices]).toEqual(['limit', []])
  })

  it('keeps tokens that are missing for so long that their refills cannot be counted exactly', () => {
    const capacity = 4_503_599_627_271_605 // by rounding the refills until it expires add half a token less
    const bucket = { limit: 1, capacity, window: 25_200_007, refill: 'interval' } as const
    const keyspace = open('x', tokenBucket(bucket))
    for (const cost of [capacity - 1, 1]) consume(keyspace, 'a', cost)
    expect([consume(keyspace).reason, notices]).toEqual(['limit', []])
  })

  it('keeps state where the clock of its store counts fractions', () => {
    now += 0.5
    const keyspace = open('x', five())
    consume(keyspace, 'a', 5)
    expect(consume(keyspace).reason).toBe('limit')
  })

  it('reads state that lies in the middle of a buffer, as clients of databases return it', () => {
    const keyspace = open('x', five())
    consume(keyspace, 'a', 5)
    const [[id, bytes]] = [...states] as [[string, Uint8Array]]
    states.set(id, Buffer.concat([Buffer.from('abc'), bytes]).subarray(3))
    expect(consume(keyspace).reason).toBe('limit')
  })

  it('lets time stand still while the clock is behind by less than a window, and begins anew if it is more', () => {
    const keyspace = open('x', five())
    consume(keyspace, 'a', 5)
    const written = now
    now -= HOUR - 1
    expect(consume(keyspace)).toMatchObject({ now, reason: 'limit', at: written + HOUR / 5 })
    now -= 1
    expect(consume(keyspace)).toMatchObject({ now, reason: undefined, remaining: 4 })
  })

  it('keeps a block that came after a booking when the booking is cancelled', () => {
    const keyspace = open('x', five())
    consume(keyspace, 'a', 5)
    const { booking } = keyspace.decide('book', 'a', 1, HOUR) as Answer
    void keyspace.correct({ kind: 'block', key: 'a', duration: HOUR })
    expect(keyspace.cancel(booking!)).toBe(true)
    expect(keyspace.cancel(booking!)).toBe(false)
    expect(consume(keyspace)).toMatchObject({ reason: 'blocked', at: now + HOUR })
  })

  it('forgets the shapes that were opened first beyond 1000 of them, and no state', () => {
    const first = open('x', five())
    consume(first, 'a', 5)
    for (let i = 1; i <= 1001; i++) open('x', gcra({ limit: 5, window: `${i}ms` }))
    expect(consume(first).reason).toBe('limit')
    expect(consume(open('x', five())).reason).toBe('limit')
  })

  it('serves limiters with all they have, but no semaphore', async () => {
    const store: Store = {
      guard,
      keyspace: (...limiter) => keyspaceOver(update, ...limiter),
      now: () => now,
      close() {},
    }
    const limiter = createLimiter({
      name: 'x',
      policies: [five()],
      store: { ...store, local: true },
      penalty: { after: 1, block: '2h' },
    })
    const decision = await limiter.consume('a', { cost: 5 })
    await decision.settle(4)
    expect((await limiter.peek('a')).remaining).toBe(1)
    await limiter.charge('a')
    expect(await limiter.consume('a')).toMatchObject({ reason: 'limit', retryAfterMs: 7_200_000 })
    expect(await limiter.consume('a')).toMatchObject({ reason: 'blocked' })
    await limiter.close()
    expect(() => createSemaphore({ name: 'x', limit: 1, store })).toThrow('one that keeps permits')
  })
})
