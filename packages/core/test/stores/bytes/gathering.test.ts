import { consumeAll, createLimiter, gcra, slidingLog } from '@sluice/core'
import {
  type Answer,
  type Caller,
  guard,
  keyspaceOver,
  type NewState,
  type Part,
  type Store,
  type StoreError,
  type Update,
  type UpdateMany,
  type Updates,
} from '@sluice/core/store'
import { NotingCaller } from '../noting-caller.js'

/** Lets others run, as a round trip does. */
const roundTrip = () => new Promise((resolve) => setImmediate(resolve))
const NOW = 1_800_000_000_000_000

describe('calls that meet an update of their key', () => {
  let states: Map<string, Uint8Array>
  let roundTrips: number
  beforeEach(() => {
    states = new Map()
    roundTrips = 0
  })
  const open = (updates: Updates, name = 'x', limit = 5) =>
    keyspaceOver(updates, name, [gcra({ limit, window: '1h' })], () => {})
  const ask = (keyspace: ReturnType<typeof open>, key: string, caller?: Caller) =>
    keyspace.decide('consume', key, 1, 0, caller) as Promise<Answer>
  const reasonsOf = async (answers: readonly Promise<Answer>[]) =>
    (await Promise.all(answers)).map(({ reason }) => reason)

  /** Reads, decides, and begins again if another was first. */
  const comparing: Update = async (id, change) => {
    for (;;) {
      roundTrips++
      const before = states.get(id)
      await roundTrip()
      const { result, state } = change(before, NOW)
      if (state === before) return result
      roundTrips++
      await roundTrip()
      if (states.get(id) !== before) continue
      if (state) states.set(id, state)
      else states.delete(id)
      return result
    }
  }

  /** The same for many, whose lost ids are done again. */
  const comparingMany: UpdateMany = async (ids, change, { allOrNone }) => {
    roundTrips++
    const before = ids.map((id) => states.get(id))
    await roundTrip()
    const after = change(before, NOW)
    const isWritten = (i: number) => after[i]!.state !== before[i]
    if (!ids.some((_, i) => isWritten(i))) return []
    roundTrips++
    await roundTrip()
    const lost = ids.filter((id, i) => isWritten(i) && states.get(id) !== before[i])
    if (allOrNone && lost.length > 0) return ids
    for (const [i, id] of ids.entries()) if (isWritten(i) && !lost.includes(id)) keep(id, after[i]!)
    return lost
  }
  const keep = (id: string, { state }: NewState) => (state ? states.set(id, state) : states.delete(id))

  describe.each([
    ['one by one', () => comparing],
    ['many at a time', () => ({ updateMany: comparingMany })],
  ])('in a store that updates ids %s', (_, updates) => {
    it.each([10, 40, 160])('cost at most four round trips, where %d come at once', async (n) => {
      const keyspace = open(updates(), 'x', n - 1)
      const reasons = await reasonsOf(Array.from({ length: n }, () => ask(keyspace, 'a')))
      expect(reasons).toEqual([...Array.from({ length: n - 1 }, () => undefined), 'limit'])
      expect(roundTrips).toBeLessThanOrEqual(4)
    })

    it('are counted exactly where several processes race', async () => {
      const processes = Array.from({ length: 4 }, () => {
        const own = updates()
        return typeof own === 'function' ? open((...args) => own(...args)) : open({ ...own })
      })
      const calls = processes.flatMap((each) => Array.from({ length: 500 }, () => ask(each, 'a')))
      expect((await reasonsOf(calls)).filter((reason) => reason === undefined)).toHaveLength(5)
      expect(roundTrips).toBeLessThanOrEqual(40)
    })

    it('are left out once their callers are gone', async () => {
      const keyspace = open(updates())
      const callers = [1, 2, 3].map(() => new NotingCaller())
      await ask(keyspace, 'a')
      const answers = callers.map((caller) => ask(keyspace, 'a', caller))
      await Promise.resolve()
      callers[1]!.gone = true
      await expect(answers[1]).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
      expect((await answers[2])!.remaining).toBe(2)
      expect([callers[0]!.unsent, callers[2]!.unsent]).toEqual([false, false])
    })

    it('are left out once their callers are gone, whatever they change', async () => {
      const policies = [gcra({ limit: 5, window: '1h' })]
      const keyspace = keyspaceOver(updates(), 'r', policies, () => {}, undefined, { max: 9 })
      const key = 'a'
      const change = { key, id: 1, decidedAt: NOW, end: NOW + 60_000_000, kind: 'settle', units: 4 } as const
      await keyspace.reservations!.reserve({ key, cost: 1, id: 1, ttl: 60_000_000, atEnd: 0 })
      const first = ask(keyspace, key)
      const gone = new NotingCaller()
      const answers = [
        keyspace.reservations!.reserve({ key, cost: 1, id: 2, ttl: 60_000_000, atEnd: 0 }, gone),
        keyspace.reservations!.change(change, gone),
        keyspace.correct({ kind: 'charge', key, cost: 1 }, gone),
      ]
      await Promise.resolve()
      gone.gone = true
      for (const answer of answers)
        await expect(answer).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
      await first
      expect(await keyspace.decide('peek', key, 1, 0)).toMatchObject({ remaining: 3, held: [1] })
    })

    it('fail alone if one of them throws', async () => {
      const keyspace = open(updates())
      const answers = ['a', 'a', 'a'].map((key, i) =>
        i === 1
          ? (keyspace.decide('consume', key, Symbol('no cost') as never, 0) as Promise<Answer>)
          : ask(keyspace, key),
      )
      await expect(answers[1]).rejects.toThrow(TypeError)
      expect([(await answers[0])!.remaining, (await answers[2])!.remaining]).toEqual([4, 3])
    })

    it('are unsent while they wait', async () => {
      const keyspace = open(updates())
      void ask(keyspace, 'a')
      await Promise.resolve()
      const caller = new NotingCaller()
      const answer = ask(keyspace, 'a', caller)
      expect(caller.unsent).toBe(true)
      await answer
      expect(caller.unsent).toBe(false)
    })
  })

  it('are answered at once in a store that answers at once', () => {
    const keyspace = open((id, change) => {
      const { result, state } = change(states.get(id), NOW)
      if (state) states.set(id, state)
      return result
    })
    expect(ask(keyspace, 'a')).toMatchObject({ remaining: 4 })
  })

  it('fail together if their update does, and the next ones go on', async () => {
    let fails = true
    const failing: Update = (id, change) =>
      fails ? roundTrip().then(() => Promise.reject(new Error('no'))) : comparing(id, change)
    const keyspace = open(failing)
    const first = [ask(keyspace, 'a'), ask(keyspace, 'b')]
    const next = ask(keyspace, 'a')
    for (const answer of first) await expect(answer).rejects.toThrow('no')
    fails = false
    await expect(next).rejects.toThrow('no')
    expect((await ask(keyspace, 'a')).remaining).toBe(4)
  })

  it('fail if their update throws at once', async () => {
    const keyspace = open({
      updateMany: () => {
        throw new Error('at once')
      },
    })
    await expect(ask(keyspace, 'a')).rejects.toThrow('at once')
  })

  it('go on after a minute without an outcome of the update before', async () => {
    jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick', 'setImmediate'] })
    try {
      let updates = 0
      const silent: Update = (id, change) => (++updates === 1 ? new Promise(() => {}) : comparing(id, change))
      const keyspace = open(silent)
      void ask(keyspace, 'a')
      const second = ask(keyspace, 'a')
      jest.advanceTimersByTime(59_000)
      void ask(keyspace, 'a')
      await roundTrip()
      expect(updates).toBe(1)
      jest.advanceTimersByTime(2_000)
      void ask(keyspace, 'a')
      expect((await second).remaining).toBe(4)
    } finally {
      jest.useRealTimers()
    }
  })

  it('leave the queue with their callers, while an update of their key does not end', async () => {
    const keyspace = open(() => new Promise(() => {}))
    void ask(keyspace, 'a')
    const caller = new NotingCaller()
    const left = ask(keyspace, 'a', caller)
    caller.gone = true
    void ask(keyspace, 'a')
    await expect(left).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
    expect(caller.unsent).toBe(true)
  })

  it('open the circuit of a store that is silent, though those that were given up have left the queue', async () => {
    jest.useFakeTimers()
    try {
      const silent: Update = () => new Promise(() => {})
      const store: Store = {
        guard,
        keyspace: (name, policies, report) => keyspaceOver(silent, name, policies, report),
        now: () => performance.now() * 1000,
        close() {},
      }
      const policies = [gcra({ limit: 5, window: '1h' })]
      const limiter = createLimiter({ name: 'x', policies, store, deadline: 50, onStoreError: 'allow' })
      for (let call = 0; call < 60; call++) {
        void limiter.consume('a')
        await jest.advanceTimersByTimeAsync(5)
      }
      let isDecided = false
      void limiter.consume('a').then(() => (isDecided = true))
      await jest.advanceTimersByTimeAsync(0)
      expect(isDecided).toBe(true)
    } finally {
      jest.useRealTimers()
    }
  })

  describe('of many keys', () => {
    it('go in one update, at most 32 keys in each and four under way', async () => {
      const sizes: number[] = []
      let underWay = 0
      let most = 0
      const updateMany: UpdateMany = async (ids, ...rest) => {
        sizes.push(ids.length)
        most = Math.max(most, ++underWay)
        const lost = await comparingMany(ids, ...rest)
        underWay--
        return lost
      }
      const keyspace = open({ updateMany })
      await Promise.all(Array.from({ length: 300 }, (_, i) => ask(keyspace, `${i}`)))
      expect(sizes).toEqual([...Array.from({ length: 9 }, () => 32), 12])
      expect(most).toBe(4)
    })

    it('do not wait for a key whose update does not end', async () => {
      const updateMany: UpdateMany = (ids, ...rest) =>
        ids[0]!.endsWith('locked') ? new Promise(() => {}) : comparingMany(ids, ...rest)
      const keyspace = open({ updateMany })
      void ask(keyspace, 'locked')
      await Promise.resolve()
      void ask(keyspace, 'locked')
      expect((await ask(keyspace, 'a')).remaining).toBe(4)
    })
  })

  describe('on several keys', () => {
    const storeOf = (updates: Updates): Store => ({
      guard,
      keyspace: (...limiter) => keyspaceOver(updates, ...limiter),
      now: () => NOW,
      close() {},
    })
    const limitersOver = (updates: Updates) => {
      const store = storeOf(updates)
      return [
        createLimiter({ name: 'tenant', policies: [gcra({ limit: 3, window: '1h' })], store }),
        createLimiter({ name: 'user', policies: [slidingLog({ limit: 1, window: '1h' })], store }),
      ] as const
    }
    const whole = ([tenant, user]: ReturnType<typeof limitersOver>, key: string) =>
      consumeAll([
        { limiter: tenant, key: 'acme' },
        { limiter: user, key },
      ])

    it('are one update, which charges all or none', async () => {
      const limiters = limitersOver({ updateMany: comparingMany })
      expect((await whole(limiters, 'u1')).allowed).toBe(true)
      expect(roundTrips).toBe(2)
      expect((await whole(limiters, 'u1')).allowed).toBe(false)
      expect((await limiters[0].peek('acme')).remaining).toBe(2)
    })

    it('charge exactly while processes race for one of the keys', async () => {
      const processes = [1, 2, 3, 4].map(() => limitersOver({ updateMany: comparingMany }))
      const wholes = processes.flatMap((each, i) => ['a', 'b', 'c'].map((key) => whole(each, `${i}${key}`)))
      const admitted = (await Promise.all(wholes)).filter(({ allowed }) => allowed)
      expect(admitted).toHaveLength(3)
      const spent = await Promise.all(
        ['a', 'b', 'c'].flatMap((key) => processes.map(([, user], i) => user.peek(`${i}${key}`))),
      )
      expect(spent.filter(({ remaining }) => remaining === 0)).toHaveLength(3)
    })

    it('change nothing if one part throws when the other is charged', async () => {
      const updates = { updateMany: comparingMany }
      const good = open(updates, 'good')
      const bad = keyspaceOver(updates, 'bad', [gcra({ limit: 5, window: '1h' })], () => {
        throw new Error('no report')
      })
      await ask(bad, 'a')
      const [[id]] = [...states] as [[string, Uint8Array]]
      states.set(id, Uint8Array.of(1)) // to be healed, and reported, with the next charge
      const parts = [good, bad].map((keyspace): Part => ({ keyspace, key: 'a', cost: 1, enforce: true }))
      const receiver = { answered: jest.fn(), failed: jest.fn() }
      await expect(good.together!.decide(parts, receiver)).rejects.toThrow('no report')
      expect([...states.keys()]).toEqual([id])
    })

    it('travel apart from those on one key, which are not undone when a whole loses its race', async () => {
      const sent: string[] = []
      let races = 2
      const updateMany: UpdateMany = async (ids, change, options) => {
        sent.push(ids.map((id) => id.split(']')[1]).join() + (options.allOrNone ? ' all' : ''))
        // Another process is faster to write what the whole needs.
        if (options.allOrNone && races-- > 0) return roundTrip().then(() => ids)
        return comparingMany(ids, change, options)
      }
      const [tenant, user] = limitersOver({ updateMany })
      const calls = [
        tenant.consume('x'),
        whole([tenant, user], 'u1'),
        user.consume('y'),
        tenant.consume('acme'),
      ]
      expect((await Promise.all(calls)).map(({ allowed }) => allowed)).toEqual([true, true, true, true])
      expect(sent.filter((ids) => !ids.endsWith('all'))).toEqual(['x,y', 'acme'])
      expect(sent.filter((ids) => ids.endsWith('all'))).toEqual(['acme,u1 all', 'acme,u1 all', 'acme,u1 all'])
    })

    it('are not one step in a store that updates one key at a time', () => {
      expect(open(comparing).together).toBeUndefined()
    })
  })

  it.each([
    ['one key', false],
    ['several keys', true],
  ])(
    'end with an error, on %s, where nothing is ever kept, and the next call is carried out',
    async (_, isWhole) => {
      let dropped = 0
      const updateMany: UpdateMany = async (ids, change, options) => {
        if (dropped === 1000) return comparingMany(ids, change, options)
        change(
          ids.map(() => undefined),
          NOW,
        )
        if (++dropped === 900) throw new Error('asks without end')
        return roundTrip().then(() => ids)
      }
      const keyspace = open({ updateMany })
      const parts = ['a', 'b'].map((key): Part => ({ keyspace, key, cost: 1, enforce: true }))
      const receiver = { answered: jest.fn(), failed: jest.fn() }
      const call = isWhole ? keyspace.together!.decide(parts, receiver) : ask(keyspace, 'a')
      const message = expect.stringMatching(/nothing was kept/)
      await expect(call).rejects.toMatchObject({ code: 'STORE_ERROR', sent: false, message })
      dropped = 1000
      expect((await ask(keyspace, 'a')).remaining).toBe(4)
    },
  )

  it('reject with a StoreError that says they were not sent', async () => {
    const keyspace = open({ updateMany: comparingMany })
    const caller = new NotingCaller(true)
    const error = await ask(keyspace, 'a', caller).catch((error: unknown) => error as StoreError)
    expect(error).toMatchObject({ failure: 'timeout', sent: false })
    expect(states.size).toBe(0)
  })
})
