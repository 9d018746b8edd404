import { command, monitor, type RedisServer, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { findShapes } from '@sluice/testing/internal'
import { Redis } from 'ioredis'
import { createLimiter, createSemaphore, gcra, type Policy, slidingLog } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { withoutRecords } from './one-redis.js'
import { composeScript, composeTogether } from '../../../src/stores/redis/script/compose.js'
import { modules } from '../../../src/stores/redis/script/modules.gen.js'
import { OPERATIONS, packed, packRequest, packWhole } from '../../../src/stores/redis/script/wire.js'
import { PERMIT_STEPS } from '../../../src/stores/permits.js'
import { Buffer } from 'node:buffer'

/*
 * A server whose memory is full and that evicts nothing refuses the commands that may need memory. Within a script it looks at the
 * first write alone: where that is one which needs none, such as DEL or PEXPIRE, it takes whatever the script writes after it.
 */

const START = 1_800_000_000_000_000
const MINUTE = 60_000_000
const penalty = { after: 1, block: MINUTE, factor: 2, maxBlock: 10 * MINUTE, forgetAfter: 10 * MINUTE }
const numbers = { limit: 5, window: 60_000 }
const shapes = findShapes().shapes.map(({ title, factory, variant }) => ({
  title,
  policies: [factory({ ...numbers, ...variant })] as readonly Policy[],
}))
const LISTS = [
  ...shapes,
  { title: 'three policies', policies: shapes.slice(0, 3).flatMap(({ policies }) => policies) },
]

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
  client = new Redis(server.port, server.host)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

describe('the first write of a script is one that needs memory', () => {
  let nonce = 0
  let key = 0
  const nextKey = (): string => `k${++key}`

  /** What a key may hold before a call: how it is written. */
  const before: Readonly<Record<string, (key: string, policies: readonly Policy[]) => Promise<unknown>>> = {
    nothing: () => Promise.resolve(),
    'a state': (key, policies) => run(composeScript(policies), [key], [argument(policies, 'consume', 3)]),
    'an exhausted state': (key, policies) =>
      run(composeScript(policies), [key], [argument(policies, 'consume', 5)]),
    'a state with a reservation': (key, policies) =>
      run(composeScript(policies, undefined, true), [key], [argument(policies, 'reserve', 3)]),
    'bytes of another program': (key) => client.set(key, 'x'.repeat(200)),
    'another type': (key) => client.rpush(key, 'x'),
    'a state whose slots are broken': async (key, policies) => {
      await run(composeScript(policies), [key], [argument(policies, 'consume', 3)])
      await client.setrange(key, (await client.strlen(key)) - 24, Buffer.alloc(24, 0xff))
    },
    'a state from the future': (key, policies) =>
      run(composeScript(policies), [key], [argument(policies, 'consume', 3, START + 1000 * MINUTE)]),
  }

  function argument(
    policies: readonly Policy[],
    operation: keyof typeof OPERATIONS,
    cost = 1,
    now = START,
  ): Buffer {
    const token = operation === 'release' ? packed([START, 3, START]) : Buffer.alloc(160)
    const hasToken = ['release', 'confirm', 'cancel'].includes(operation)
    const ofReserving = {
      reserve: { reserving: [7, MINUTE, 0, 10] },
      change: { token: packed([7, START, START + MINUTE, cost, 0, 0, 10]) },
    }[operation as string]
    const request = {
      operation,
      policies,
      cost,
      span: MINUTE / 2,
      ...(hasToken && { token }),
      ...ofReserving,
    }
    return packRequest(request, now, ++nonce)
  }

  it.each(LISTS)(
    'under $title, alone and beside another key',
    async ({ policies }) => {
      const lines = await watched(async () => {
        for (const then of [undefined, 'window', 'fresh'] as const) {
          const beside = then && { ...penalty, ...(then === 'fresh' && { then }) }
          for (const operation of Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[])
            for (const write of Object.values(before)) {
              const script = composeScript(policies, beside, /reserve|change/.test(operation))
              const [alone, one, other] = [nextKey(), nextKey(), nextKey()]
              await write(alone, policies)
              await write(one, policies)
              // Half a window later, in which a key's time to live has to be set anew.
              const late = argument(policies, operation, 4, START + 1.5 * MINUTE)
              await run(script, [alone], [argument(policies, operation)])
              await run(script, [alone], [late])
              await run(script, [one, other], [argument(policies, operation), argument(policies, 'consume')])
            }
        }
      })
      expect(await wrongOf(lines)).toEqual([])
    },
    60_000,
  )

  it('in a call on several keys', async () => {
    const lists = [[gcra(numbers)], [slidingLog(numbers)]]
    const script = composeTogether(lists.map((policies) => ({ policies })))
    const lines = await watched(async () => {
      for (const first of Object.values(before))
        for (const second of Object.values(before)) {
          const keys = [nextKey(), nextKey()]
          await first(keys[0]!, lists[0]!)
          await second(keys[1]!, lists[1]!)
          const parts = lists.map((policies, i) => ({
            list: i + 1,
            request: { operation: 'consume' as const, policies, cost: 1 },
            enforce: true,
          }))
          await run(script, keys, [packWhole(parts, START, () => ++nonce)])
        }
    })
    expect(await wrongOf(lines)).toEqual([])
  })

  it('in the steps of permits', async () => {
    const lines = await watched(async () => {
      for (const write of [() => Promise.resolve(), (key: string) => client.rpush(key, 'x')])
        for (const first of PERMIT_STEPS)
          for (const then of PERMIT_STEPS) {
            const key = nextKey()
            await write(key)
            await permits(first, key, 'one:1', START)
            await permits('wait', key, 'two:1', START)
            await permits(then, key, 'one:1', START + MINUTE)
          }
    })
    expect(await wrongOf(lines)).toEqual([])
  })

  it('in what processes post for each other', async () => {
    const lines = await watched(async () => {
      for (const write of [() => Promise.resolve(), (key: string) => client.rpush(key, 'x')]) {
        const key = nextKey()
        await write(key)
        for (const [life, now] of [
          [MINUTE, START],
          [MINUTE, START],
          [MINUTE, START + 2 * MINUTE],
          [0, START],
        ] as const)
          await run(modules['board']!, [key], [packed([life, now, 6], Buffer.from('authortext'))])
      }
    })
    expect(await wrongOf(lines)).toEqual([])
  })

  it('in records of operators', async () => {
    const lines = await watched(async () => {
      for (const write of [() => Promise.resolve(), (key: string) => client.set(key, 'x')]) {
        const key = nextKey()
        await write(key)
        for (const [now, most, id, text] of [
          [START, 1, 'a\nheld', 'text'],
          [START + 2 * MINUTE, 1, 'a\nother', 'text'],
          [START + 2 * MINUTE, 0, '', 'a\nother'],
          [START + 2 * MINUTE, 1, 'a\nother', ''],
        ] as const)
          await run(
            modules['records']!,
            [key],
            [packed([now, 0, 0, MINUTE, most, id.length], Buffer.from(id + text))],
          )
      }
    })
    expect(await wrongOf(lines)).toEqual([])
  })

  it('and no other script is sent', () => {
    const sent = ['script', 'together', 'semaphore', 'board', 'records']
    const calls = Object.keys(modules).filter((name) => /^local .*\bredis\.call\b/m.test(modules[name]!))
    expect(calls.toSorted()).toEqual(sent.toSorted())
  })
})

describe('a full server', () => {
  beforeAll(async () => {
    await client.flushall()
    await permits('take', 'held', 'one:1', START)
    await permits('wait', 'held', 'one:2', START)
    await run(
      composeScript([gcra(numbers)]),
      ['old'],
      [packRequest({ operation: 'consume', policies: [gcra(numbers)], cost: 1 }, START, 1)],
    )
    await client.set('neighbour', 'x'.repeat(3 << 20))
    await command(server, 'CONFIG', 'SET', 'maxmemory', '3mb')
  })

  it('takes no key of a semaphore', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const store = redisStore(client)
    const semaphore = createSemaphore({ name: 's', limit: 2, store })
    const keys = await client.dbsize()
    const calls = Array.from({ length: 300 }, (_, i) => semaphore.acquire(`k${i}`, { maxWait: 0 }))
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'STORE_OOM' })
    await expect(permits('wait', 'new', 'one:1', START)).rejects.toThrow('OOM')
    await expect(permits('poll', 'new', 'one:1', START)).rejects.toThrow('OOM')
    await expect(permits('renew', 'new', 'one:1', START)).rejects.toThrow('OOM')
    expect(await client.dbsize()).toBe(keys)
    await store.close()
  })

  it('renews, grants and frees the permits that it knows, and says so where none is free', async () => {
    expect(String(await permits('renew', 'held', 'one:1', START))).toBe('2')
    expect(String(await permits('poll', 'held', 'one:2', START))).toBe('1')
    expect(String(await permits('take', 'held', 'two:1', START))).toBe('0')
    await permits('release', 'held', 'one:1', START)
    expect(String(await permits('poll', 'held', 'one:2', START))).toBe('2')
  })

  it.each(PERMIT_STEPS)('discards a key of another type where permits should be: %s', async (step) => {
    await command(server, 'CONFIG', 'SET', 'maxmemory', '0')
    await client.rpush('list', 'x')
    await command(server, 'CONFIG', 'SET', 'maxmemory', '3mb')
    const said = await permits(step, 'list', 'one:1', START).catch((error: Error) => error.message)
    expect(String(said)).toMatch(step === 'release' ? /^0$/ : /^OOM/)
    expect(await client.exists('list')).toBe(0)
  })

  it.each(LISTS)('denies exhausted callers that reserve, under $title', async ({ policies }) => {
    expectWarnings([], { perhaps: ['RESERVATION_DRAINS', 'CLIENT_REPLAYS'] })
    const time = { now: START }
    const store = withoutRecords(redisStore(client, { clock: () => time.now, denialCache: false }))
    await command(server, 'CONFIG', 'SET', 'maxmemory', '0')
    const open = (name: string) =>
      createLimiter({ name, policies, store, deadline: '10s', onStoreError: 'throw', reservations: {} })
    const [held, ended] = [open('held'), open('ended')]
    for (const limiter of [held, ended]) {
      await limiter.reserve('k', { cost: 3, ttl: '10s' })
      await limiter.reserve('k', { cost: 2, ttl: '5ms', atEnd: 2 })
      if (limiter === ended) time.now += 6000
    }
    await command(server, 'CONFIG', 'SET', 'maxmemory', '3mb')
    const COST = { cost: 5 }
    const lines = await watched(async () => {
      for (const limiter of [held, ended])
        for (const denied of [limiter.consume('k', COST), limiter.reserve('k', { ...COST, ttl: '1s' })])
          expect(await denied).toMatchObject({ allowed: false, degraded: undefined })
    })
    expect(lines.filter((line) => / lua\] "(set|setrange|del|pexpire)"/i.test(line))).toEqual([])
    for (const limiter of [held, ended]) await limiter.reset('k')
    await store.close()
  })

  it('takes no new key beside one that is reset, and resets', async () => {
    const policies = [gcra(numbers)]
    const args = ['reset', 'consume', 'consume'].map((operation) =>
      packRequest({ operation: operation as 'reset', policies, cost: 1 }, START, 9),
    )
    const [, reset, ...others] = (await run(composeScript(policies), ['old', 'n1', 'n2'], args)) as Buffer[]
    expect(String(reset)).toBe('')
    for (const reply of others) expect(String(reply)).toMatch(/^!OOM/)
    expect(await client.exists('old', 'n1', 'n2')).toBe(0)
  })
})

/** Runs a script by its SHA-1, as MONITOR shows each text that is sent. */
async function run(script: string, keys: readonly string[], args: readonly Buffer[]): Promise<unknown> {
  const sha = shas.get(script) ?? String(await client.script('LOAD', script))
  shas.set(script, sha)
  return client.callBuffer('EVALSHA', sha, keys.length, ...keys, ...args)
}

const shas = new Map<string, string>()

function permits(
  step: (typeof PERMIT_STEPS)[number],
  key: string,
  ticket: string,
  now: number,
): Promise<unknown> {
  const times = [30_000_000, 2_000_000, 1_000_000, 700_000, now]
  const words = Buffer.from(`channel:\n${ticket.split(':')[0]}\n${ticket}`)
  return run(modules['semaphore']!, [key], [packed([PERMIT_STEPS.indexOf(step), 1, ...times], words)])
}

/** The lines of MONITOR while `act` runs. */
async function watched(act: () => Promise<void>): Promise<readonly string[]> {
  const watching = await monitor(server)
  await act()
  return watching.stop()
}

/** The scripts, as lists of their commands, that ask for memory only after a write which needs none. */
async function wrongOf(lines: readonly string[]): Promise<readonly string[]> {
  const scripts: string[][] = []
  for (const line of lines) {
    const [, source, name] = /^\S+ \[\d+ (\S+)\] "(\w+)"/.exec(line) ?? []
    if (source === 'lua') scripts.at(-1)?.push(name!.toUpperCase())
    else scripts.push([])
  }
  const names = [...new Set(scripts.flat())]
  const infos = await command<[string, number, string[]][]>(server, 'COMMAND', 'INFO', ...names)
  const flags = new Map(names.map((name, i) => [name, infos[i]![2]]))
  const wrong = scripts.flatMap((commands) => {
    const writes = commands.filter((name) => flags.get(name)!.includes('write'))
    const asks = writes.map((name) => flags.get(name)!.includes('denyoom'))
    return asks.includes(true) && !asks[0] ? commands.join(' ') : []
  })
  return [...new Set(wrong)]
}
