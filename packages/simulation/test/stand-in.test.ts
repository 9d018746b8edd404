import { createLimiter, type Decision, type Limiter } from '@sluice/core'
import { CONNECTION, type ScriptReply } from '@sluice/core/internal'
import { redisStore, type RedisStore } from '@sluice/core/redis'
import { randomFrom } from '@sluice/harness/figures'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { findShapes } from '@sluice/testing/internal'
import { Redis } from 'ioredis'
import { createHash } from 'node:crypto'
import { luaIsMissing } from '../../core/test/lua/lua-redis.js'
import { EPOCH_MS } from '../src/process.js'
import { Server } from '../src/server.js'
import { World } from '../src/world.js'

jest.setTimeout(600_000)

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
const CALLS = 10_000
const WARNINGS = [
  'CLIENT_ON_REPLICA',
  'RESERVATION_DRAINS',
  'RESERVATION_LATE',
  'SHORT_DURATION',
  'STORE_DEGRADED',
  'STORE_RECOVERED',
]
const REFUSALS = ['oom', 'readonly', 'busy'] as const

/*
 * The server of simulations beside a real one, by the same calls on the same clock, which is handed to the scripts. What is random in a call
 * is drawn from one seed for both.
 */
describeWithLua(missing ?? 'the server of simulations', () => {
  let real: RedisServer
  let client: Redis
  let other: Redis
  let endless: Promise<unknown>
  let stand: Server
  let now: number
  const stores: RedisStore[] = []
  /** The reads of records, for which the clock stands still, as a process takes the store's time from them. */
  let reading: Promise<unknown> = Promise.resolve()
  /** What a process does once a second, in which it forgets and reads records: done at one instant for both stores. */
  const everySecond: (() => void)[] = []
  beforeAll(async () => {
    real = await startRedis()
    client = new Redis(real.port, { maxRetriesPerRequest: 0 })
    other = client.duplicate()
    stand = new Server(new World())
    const connection = {
      evalsha: async (sha: string, keys: never, args: never) => run({ sha }, keys, args),
      eval: async (script: string, keys: never, args: never) => run({ script }, keys, args),
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
  beforeEach(() => {
    const { setTimeout } = globalThis
    const setAll = (task: () => void, ms?: number): unknown =>
      ms === 1000 ? { unref: () => everySecond.push(task) } : setTimeout(task, ms)
    jest.spyOn(globalThis, 'setTimeout').mockImplementation(setAll as typeof setTimeout)
    now = 1_800_000_000_000_000
    expectWarnings([], { perhaps: WARNINGS })
  })
  afterEach(() => jest.restoreAllMocks())
  afterAll(async () => {
    for (const store of stores) await store.close()
    client.disconnect()
    other.disconnect()
    await real.stop()
  })

  /** What the server of simulations answers to a script at this instant. */
  function run(
    { sha, script }: { readonly sha?: string; readonly script?: string },
    keys: readonly string[],
    args: readonly Buffer[] = [],
  ): ScriptReply {
    stand.skew = now - EPOCH_MS * 1000
    return stand.run(stand.nodes[0]!, { sha, script, keys, args }, 'test', 0).reply
  }

  /** Milliseconds until the server of simulations forgets a key; -2 where it is not there. A real one goes by its own clock. */
  const ttlOf = (key: string): number =>
    Number(String(run({ script: "return '' .. redis.call('PTTL', KEYS[1])" }, [key])))

  /** Has both refuse calls, or end it. A real one is busy while a script takes longer than a millisecond, and until it is killed. */
  async function refuse(refusal: (typeof REFUSALS)[number], isOn: boolean): Promise<void> {
    stand.refuse(refusal, isOn)
    if (refusal === 'oom') await client.config('SET', 'maxmemory', isOn ? 1 : 0)
    else if (refusal === 'readonly')
      await (isOn ? client.replicaof('127.0.0.1', 1) : client.call('REPLICAOF', 'NO', 'ONE'))
    else if (isOn) {
      await client.config('SET', 'lua-time-limit', 1)
      endless = other.eval('while true do end', 0).catch((error: Error) => error)
      while (await client.ping().catch(() => undefined));
    } else {
      await client.script('KILL')
      await endless
    }
  }

  /** Does the same on both, with the same random numbers, and returns what came of it, or the failure. */
  async function onBoth<T>(
    act: (store: RedisStore, i: number) => Promise<T>,
    seed: number,
  ): Promise<unknown[]> {
    const outcomes: unknown[] = []
    for (const [i, store] of stores.entries()) {
      const random = jest.spyOn(Math, 'random').mockImplementation(randomFrom(seed))
      outcomes.push(await act(store, i).catch(codeOf))
      random.mockRestore()
    }
    return outcomes
  }

  const codeOf = ({ code, message }: Error & { code?: string }): string => code ?? message.split(' ')[0]!

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
    const limiters = open()
    for (let call = 0; call < CALLS; call++) {
      now += whole(4) === 0 ? whole(1_500_000) : whole(20_000)
      if (whole(400) === 0) now -= whole(5_000_000)
      if (whole(20) === 0) for (const run of everySecond.splice(0)) run()
      await reading
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
        if (kind === 6) return told(await limiter.peek(key, { cost }))
        return told(await limiter.consume(key, { cost }))
      }, call)
      expect({ call, outcome: second }).toEqual({ call, outcome: first })
    }
  })

  const told = (decision: Decision) => {
    const { allowed, remaining, reason, retryAfterMs, resetAfterMs, policies } = decision
    return { allowed, remaining, reason, retryAfterMs, resetAfterMs, policies }
  }

  /** The latest reservation of each limiter and key. */
  const ids = new Map<string, string>()

  /** Writes, removes or lists what operators say of keys. */
  async function ruled(limiter: Limiter, key: string, how: number): Promise<unknown> {
    const who = { reason: 'a test', by: 'the simulation' }
    // When one was applied last is told by the reads once a second.
    if (how < 3) return (await limiter.overrides()).map((each) => ({ ...each, lastAppliedAt: undefined }))
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

  it.each(REFUSALS)('refuses calls as a real one does: %s', async (refusal) => {
    const limiters = open()
    const known = (i: number) => limiters[i]![0]!
    await onBoth((_, i) => known(i).consume('full', { cost: 5 }), 1)
    await refuse(refusal, true)
    const [first, second] = await onBoth(async (store, i) => {
      const calls = [
        known(i).consume('new'),
        known(i).consume('full'),
        known(i).peek('full'),
        permitsOf(store).ask('take', 'new', [1], 2),
        known(i).reset('full'),
      ]
      return Promise.all(calls.map((each) => Promise.resolve<unknown>(each).then(() => 'answered', codeOf)))
    }, 2)
    await refuse(refusal, false)
    expect(second).toEqual(first)
    expect(first).toContain(`STORE_${refusal.toUpperCase()}`)
  })

  it('forgets keys when a real one does', async () => {
    const limiters = open()
    for (const which of limiters[0]!.keys()) {
      await client.flushall()
      const began = Date.now()
      await onBoth((_, i) => limiters[i]![which]!.consume('mortal'), which)
      const [key] = await client.keys('*:mortal')
      const ttl = await client.pttl(key!)
      const [most, found] = [ttl + Date.now() - began + 1, ttlOf(key!)]
      expect(found).toBeGreaterThanOrEqual(ttl)
      expect(found).toBeLessThanOrEqual(most)
      now += found * 1000 - 1
      expect(ttlOf(key!)).toBe(0)
      now++
      expect(ttlOf(key!)).toBe(-2)
    }
  })

  it('forgets scripts as a real one does', async () => {
    const script = 'return KEYS[1]'
    const sha = createHash('sha1').update(script).digest('hex')
    const ask = [
      {
        sha: () => client.evalsha(sha, 1, 'k'),
        script: () => client.eval(script, 1, 'k'),
        flush: () => client.script('FLUSH'),
      },
      {
        sha: () => run({ sha }, ['k']),
        script: () => run({ script }, ['k']),
        flush: () => stand.flushScripts(),
      },
    ]
    const told = await onBoth(async (_, i) => {
      const { sha, script, flush } = ask[i]!
      const answers = [await script(), await sha(), await flush()].slice(0, 2).map(String)
      const error = await Promise.resolve()
        .then(sha)
        .catch((each: Error) => each.message)
      return [...answers, error]
    }, 1)
    expect(told[1]).toEqual(told[0])
  })
})
