import { Redis } from 'ioredis'
import { command, info, monitor, startCluster, until } from '@sluice/harness/redis'
import { createLimiter, gcra, type LimiterOptions, type Policy, slidingLog } from '../../../src/index.js'
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(60_000)

const { server, client } = oneRedis()

const HUNDRED: readonly Policy[] = [slidingLog({ limit: 100, window: '1h' })]
let limiters = 0

function open(options: Partial<LimiterOptions> = {}, storeOptions: RedisStoreOptions = {}, redis = client) {
  const store = redisStore(redis, { denialCache: false, ...storeOptions })
  const name = `group-${++limiters}`
  const defaults = { name, policies: HUNDRED, deadline: '10s', onStoreError: 'throw' } as const
  return { store, limiter: createLimiter({ ...defaults, ...options, store }) }
}

const users = (count: number) => Array.from({ length: count }, (_, i) => `user:${i}`)

async function scriptCalls(): Promise<number> {
  const { cmdstat_evalsha: stat = 'calls=0' } = await info(server, 'commandstats')
  return Number(/calls=(\d+)/.exec(stat)![1])
}

describe('calls that are made together', () => {
  it('are sent as one batch, and each resolves with the answer for its own key', async () => {
    const { limiter } = open()
    await limiter.consume('user:3', { cost: 40 })
    const before = await scriptCalls()
    const decisions = await Promise.all(users(500).map((key) => limiter.consume(key)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(users(500).map((_, i) => (i === 3 ? 59 : 99)))
    expect((await scriptCalls()) - before).toBeLessThan(20)
  })

  it('on one key each count the charges of those before them', async () => {
    const { limiter } = open()
    const decisions = await Promise.all(Array.from({ length: 150 }, () => limiter.consume('hot')))
    expect(decisions.map(({ allowed }) => allowed)).toEqual(decisions.map((_, i) => i < 100))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(decisions.map((_, i) => Math.max(0, 99 - i)))
  })

  it('are carried out in order, whatever the operation', async () => {
    const { limiter } = open()
    const company = users(20).map((key) => limiter.consume(key))
    const [first, , second, , third, , fourth] = await Promise.all([
      limiter.consume('k', { cost: 90 }),
      limiter.consume('k', { cost: 10 }),
      limiter.peek('k'),
      limiter.reset('k'),
      limiter.consume('k', { cost: 30 }),
      limiter.refund('k', { cost: 20 }),
      limiter.consume('k'),
    ])
    expect([first, second, third, fourth].map((decision) => decision.remaining)).toEqual([10, 0, 70, 89])
    await Promise.all(company)
  })

  it('are carried out in order where a log has to grow for the first on its key, and not for the next', async () => {
    const { limiter } = open()
    await limiter.consume('k', { cost: 3 })
    const company = users(20).map((key) => limiter.consume(key))
    const calls = [2, 1].map((cost) => limiter.consume('k', { cost }))
    const decisions = await Promise.all(calls)
    expect(decisions.map(({ remaining }) => remaining)).toEqual([95, 94])
    await Promise.all(company)
  })

  it('send the script again if the server has lost it, and are charged once', async () => {
    const { limiter } = open()
    await command(server, 'SCRIPT', 'FLUSH')
    const decisions = await Promise.all(users(200).map((key) => limiter.consume(key)))
    expect(decisions.every(({ remaining }) => remaining === 99)).toBe(true)
  })

  it('are sent one by one with groupCommit: false', async () => {
    const { limiter } = open({}, { groupCommit: false })
    await limiter.consume('user:0')
    const watching = await monitor(server)
    await Promise.all(users(100).map((key) => limiter.consume(key)))
    // Beside these a store reads its records once a second.
    const calls = (await watching.stop()).filter(
      (line) => /"evalsha"/i.test(line) && !line.includes(':records:'),
    )
    expect(calls).toHaveLength(100)
  })

  it('are each decided by their own limits', async () => {
    const { limiter } = open()
    const tier = [slidingLog({ limit: 10, window: '1h' })]
    const calls = Array.from({ length: 40 }, (_, i) => limiter.consume('k', i % 2 ? { policies: tier } : {}))
    const limits = (await Promise.all(calls)).map(({ limit }) => limit)
    expect(limits).toEqual(limits.map((_, i) => (i % 2 ? 10 : 100)))
  })
})

describe('a caller', () => {
  it('is answered although another key of the same call could not be written', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const { limiter } = open()
    await limiter.consume('spent', { cost: 100 })
    await command(server, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await command(server, 'CONFIG', 'SET', 'maxmemory', '1')
    const calls = [...users(20), 'spent', ...users(10)].map((key) => limiter.consume(key))
    const outcomes = await Promise.allSettled(calls)
    await command(server, 'CONFIG', 'SET', 'maxmemory', '0')
    const codes = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.allowed : (outcome.reason as { code: string }).code,
    )
    expect(codes).toEqual(codes.map((_, i) => (i === 20 ? false : 'STORE_OOM')))
  })

  it('that left before the call was sent is not charged', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const { limiter } = open({ deadline: '200ms', onStoreError: 'allow' })
    await limiter.consume('k')
    server.pause()
    const calls: Promise<unknown>[] = []
    for (let turn = 0; turn < 100; turn++) {
      for (let i = 0; i < 3; i++) calls.push(limiter.consume('k'))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(calls)
    server.resume()
    const { limiter: patient } = open({ name: limiter.name })
    const { remaining } = await patient.peek('k')
    expect(remaining).toBeLessThan(99)
    expect(remaining).toBeGreaterThan(0)
  })

  it('that left before a change was sent has changed nothing, but units are given back', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const { limiter } = open({ deadline: '200ms', reservations: {} })
    const reservation = (await limiter.reserve('k', { cost: 10, ttl: '1h' })).reservation!
    const [spent, more] = [await limiter.consume('spent', { cost: 10 }), await limiter.consume('more')]
    server.pause()
    const calls: Promise<unknown>[] = []
    for (let turn = 0; turn < 100; turn++) {
      for (let i = 0; i < 3; i++) calls.push(limiter.consume('company').catch(() => {}))
      await new Promise((resolve) => setImmediate(resolve))
    }
    const late: Promise<unknown>[] = [
      limiter.reserve('k', { cost: 20, ttl: '10m' }),
      reservation.settle(4),
      reservation.extend('2h'),
      limiter.charge('k', { cost: 30 }),
      limiter.refund('spent', { cost: 2 }),
      limiter.block('spent', '1h'),
      more.settle(7),
    ]
    const given = spent.settle(3).catch(({ sent }: { sent: boolean }) => sent)
    for (const each of late) await expect(each).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
    expect(await given).toBe(true)
    await Promise.all(calls)
    server.resume()
    const { limiter: patient } = open({ name: limiter.name, reservations: {} })
    const stateOf = async (key: string) => (await patient.peek(key)).policies[0]!
    await until('units to be given back', async () => (await stateOf('spent')).used === 3)
    expect(await stateOf('k')).toMatchObject({ used: 10, held: 10 })
    expect(await stateOf('more')).toMatchObject({ used: 1 })
    expect(await patient.reservation('k', reservation.id).settle(4)).toEqual({ units: -6, late: false })
  })
})

describe('a store', () => {
  it('that is closed rejects the calls that wait to be sent', async () => {
    const { limiter, store } = open()
    await limiter.consume('k')
    const calls = users(30).map((key) => limiter.consume(key).catch(({ code }: { code: string }) => code))
    void store.close()
    const outcomes = await Promise.all(calls)
    expect(outcomes.filter((outcome) => outcome === 'CLOSED').length).toBeGreaterThanOrEqual(20)
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('serves one node of a Cluster through a client that takes it for a standalone server', async () => {
    const cluster = await startCluster({ masters: 1 })
    const node = cluster.masters[0]!
    const plain = new Redis({ host: node.host, port: node.port, maxRetriesPerRequest: 0 })
    const { limiter } = open({ policies: [gcra({ limit: 10, window: '1h' })] }, {}, plain)
    for (let round = 1; round <= 3; round++) {
      const decisions = await Promise.all(users(100).map((key) => limiter.consume(key)))
      expect(decisions.every(({ remaining }) => remaining === 10 - round)).toBe(true)
    }
    plain.disconnect()
    await cluster.stop()
  })

  it.each([1, 'yes', null])('refuses groupCommit: %p', (groupCommit) => {
    const options = { groupCommit: groupCommit as unknown as boolean }
    expect(() => redisStore(client, options)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('groupCommit') }),
    )
  })
})
