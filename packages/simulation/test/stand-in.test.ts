import { createLimiter, type Limiter } from '@sluice/core'
import { CONNECTION } from '@sluice/core/internal'
import { redisStore, type RedisStore } from '@sluice/core/redis'
import { randomFrom } from '@sluice/harness/figures'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { findShapes } from '@sluice/testing/internal'
import { Redis } from 'ioredis'
import { luaIsMissing } from '../../core/test/lua/lua-redis.js'
import { EPOCH_MS } from '../src/process.js'
import { type Refusal, Server } from '../src/server.js'
import { World } from '../src/world.js'

jest.setTimeout(120_000)

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
const CALLS = 10_000

/*
 * The server of simulations beside a real one, by the same calls on the same clock, which is handed to the scripts. What is random in a call
 * is drawn from one seed for both.
 */
describeWithLua(missing ?? 'the server of simulations', () => {
  let real: RedisServer
  let client: Redis
  let stand: Server
  let now: number
  const stores: RedisStore[] = []
  /** The reads of records once a second, for which the clock stands still, as a process takes the store's time from them. */
  let reading: Promise<unknown> = Promise.resolve()
  beforeAll(async () => {
    real = await startRedis()
    client = new Redis(real.port, { maxRetriesPerRequest: 0 })
    stand = new Server(new World())
    const run = async (sha: string | undefined, script: string | undefined, keys: never, args: never) => {
      stand.skew = now - EPOCH_MS * 1000
      return stand.run(stand.nodes[0]!, { sha, script, keys, args }, 'test', 0).reply
    }
    const connection = {
      evalsha: (sha: string, keys: never, args: never) => run(sha, undefined, keys, args),
      eval: (script: string, keys: never, args: never) => run(undefined, script, keys, args),
      subscribe: (channel: string, receive: (message: string) => void) => stand.subscribe(channel, receive),
      inOneWrite: (send: () => void) => send(),
      isReady: () => true,
      address: 'simulated',
      trouble: () => undefined,
      connect: () => undefined,
      isCluster: false,
      replays: false,
      close() {},
    }
    for (const each of [client, { [CONNECTION]: connection }])
      stores.push(redisStore(each as Redis, { clock: () => now, denialCache: false }))
    for (const store of stores) {
      const records = store.records!()
      const read: typeof records.read = (...asked) => {
        const answer = Promise.resolve(records.read(...asked))
        reading = Promise.allSettled([reading, answer])
        return answer
      }
      Object.assign(store, { records: () => ({ write: records.write.bind(records), read }) })
    }
  })
  beforeEach(() => (now = 1_800_000_000_000_000))
  afterEach(() => jest.restoreAllMocks())
  afterAll(async () => {
    for (const store of stores) await store.close()
    client.disconnect()
    await real.stop()
  })

  /** Does the same on both, with the same random numbers, and returns what came of it, or the failure. */
  async function onBoth<T>(
    act: (store: RedisStore, i: number) => Promise<T>,
    seed: number,
  ): Promise<unknown[]> {
    const outcomes: unknown[] = []
    for (const [i, store] of stores.entries()) {
      const random = jest.spyOn(Math, 'random').mockImplementation(randomFrom(seed))
      outcomes.push(await act(store, i).catch((error: { code?: string }) => error.code ?? error))
      random.mockRestore()
    }
    return outcomes
  }

  /** For each store the limiters of all shapes. */
  const open = (): Limiter[][] =>
    stores.map((store) =>
      findShapes()
        .shapes.filter(({ model }) => !model.onlyWindow)
        .map((shape, i) => {
          const policies = [shape.factory({ limit: 5, window: 1000, ...shape.variant })]
          const all = { store, deadline: '1m', onStoreError: 'throw' } as const
          const penalty = i % 3 === 0 && { penalty: { after: 3, block: '3s', forgetAfter: '10s' } as const }
          const reservations = i % 3 === 1 && { reservations: { max: 3 } }
          return createLimiter({ name: `shape ${i}`, policies, ...all, ...penalty, ...reservations })
        }),
    )

  it(`answers ${CALLS} calls as a real one does`, async () => {
    const random = randomFrom(1)
    const whole = (to: number): number => Math.floor(random() * to)
    expectWarnings([], { perhaps: ['RESERVATION_DRAINS', 'RESERVATION_LATE', 'SHORT_DURATION'] })
    const limiters = open()
    for (let call = 0; call < CALLS; call++) {
      await reading
      now += whole(4) === 0 ? whole(1_500_000) : whole(20_000)
      if (whole(400) === 0) now -= whole(5_000_000)
      const [which, key, cost, kind, ticket] = [
        whole(limiters[0]!.length),
        `k${whole(3)}`,
        whole(4),
        whole(15),
        whole(9),
      ]
      const reserved = limiters[0]![which]!.reserves ? ids.get(`${which} ${key}`) : undefined
      const [first, second] = await onBoth(async (store, i) => {
        const limiter = limiters[i]![which]!
        if (kind === 0) return limiter.refund(key, { cost })
        if (kind === 1) return limiter.charge(key, { cost })
        if (kind === 2) return ticket === 0 ? limiter.reset(key) : limiter.hold(key, '300ms')
        if (kind === 3) return limiter.block(key, `${1 + cost * 200}ms`)
        if (kind < 6) {
          const step = (['take', 'wait', 'poll', 'renew', 'release'] as const)[ticket % 5]!
          return permitsOf(store).ask(step, key, [ticket], 2)
        }
        if (kind > 12) return ruled(limiter, key, ticket)
        if (kind > 10 && reserved !== undefined) {
          const reservation = limiter.reservation(key, reserved)
          if (kind === 12) return reservation.settle(cost)
          return reservation.extend(`${100 + 100 * ticket}ms`, { atEnd: cost })
        }
        if (kind > 9 && limiter.reserves) {
          const { allowed, reason, policies, reservation } = await limiter.reserve(key, {
            cost: 1 + cost,
            ttl: 800,
          })
          if (reservation) ids.set(`${which} ${key}`, reservation.id)
          return { allowed, reason, policies, id: reservation?.id }
        }
        const decision = kind === 6 ? await limiter.peek(key, { cost }) : await limiter.consume(key, { cost })
        const { allowed, remaining, reason, retryAfterMs, resetAfterMs, policies } = decision
        return { allowed, remaining, reason, retryAfterMs, resetAfterMs, policies }
      }, call)
      expect({ call, outcome: second }).toEqual({ call, outcome: first })
    }
  })

  /** The latest reservation of each limiter and key. */
  const ids = new Map<string, string>()

  /** Writes, removes or lists what operators say of keys. */
  async function ruled(limiter: Limiter, key: string, how: number): Promise<unknown> {
    const who = { reason: 'a test', by: 'the simulation' }
    if (how < 3) return limiter.overrides()
    if (how === 3) return limiter.removeOverride(key)
    if (how === 4) return limiter.block(key, '200ms', who)
    const what = how === 5 ? { exempt: true as const } : { factor: how - 5 }
    return limiter.override(key, { ...what, ...who, until: '2s', force: true })
  }

  it('tells a ticket that waits of its permit, as a real one does', async () => {
    const told = await onBoth(async (store, i) => {
      const own = permitsOf(store)
      const heard = new Promise<number>((resolve) => own.listen(resolve))
      while (i === 0 && (await client.pubsub('CHANNELS', '*:to:*')).length === 0);
      const states = []
      for (const [step, ticket] of [
        ['take', 1],
        ['wait', 2],
        ['release', 1],
      ] as const)
        states.push(await own.ask(step, 'told', [ticket], 1))
      return [await heard, ...states]
    }, 1)
    expect(told[1]).toEqual(told[0])
  })

  const permits = new Map<RedisStore, ReturnType<NonNullable<RedisStore['permits']>>>()
  const permitsOf = (store: RedisStore) => {
    const own = permits.get(store) ?? store.permits!('permits', 2000)
    permits.set(store, own)
    return own
  }

  it.each([
    ['oom', ['config', 'set', 'maxmemory', '1'], ['config', 'set', 'maxmemory', '0']],
    ['readonly', ['replicaof', '127.0.0.1', '1'], ['replicaof', 'no', 'one']],
  ] as const)('refuses calls as a real one does: %s', async (refusal: Refusal, begin, end) => {
    const limiters = open()
    const known = (i: number) => limiters[i]![0]!
    expectWarnings([], {
      perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED', 'RESERVATION_DRAINS', 'RESERVATION_LATE'],
    })
    await onBoth((_, i) => known(i).consume('full', { cost: 5 }), 1)
    await client.call(begin[0], ...begin.slice(1))
    stand.refuse(refusal, true)
    const [first, second] = await onBoth(async (store, i) => {
      const settled = await Promise.allSettled([
        known(i).consume('new'),
        known(i).consume('full'),
        known(i).peek('full'),
        permitsOf(store).ask('take', 'new', [1], 2),
      ])
      return settled.map((each) =>
        each.status === 'fulfilled' ? 'answered' : (each.reason as { code: string }).code,
      )
    }, 2)
    await client.call(end[0], ...end.slice(1))
    stand.refuse(refusal, false)
    expect(second).toEqual(first)
    expect(first).toContain(`STORE_${refusal.toUpperCase()}`)
  })

  it('forgets scripts as a real one does', async () => {
    const errors = await onBoth(async (_, i) => {
      const sha = '0'.repeat(40)
      if (i === 0) return client.evalsha(sha, 1, 'k').catch((error: Error) => error.message)
      return Promise.resolve()
        .then(() => stand.run(stand.nodes[0]!, { sha, script: undefined, keys: ['k'], args: [] }, 'test', 0))
        .catch((error: Error) => error.message)
    }, 1)
    expect(errors[1]).toBe(errors[0])
  })
})
