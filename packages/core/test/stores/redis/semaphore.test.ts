import { type ChildProcess, spawn } from 'node:child_process'
import { onSources } from '@sluice/harness/processes'
import { createClient } from 'redis'
import { command, monitor, pause, until } from '@sluice/harness/redis'
import {
  createSemaphore,
  type Permit,
  type PermitWait,
  type Semaphore,
  type SemaphoreOptions,
} from '../../../src/index.js'
import type { PermitStep } from '../../../src/stores/permits.js'
import { redisStore, type RedisStore } from '../../../src/stores/redis/index.js'
import { stepOf } from './permit-steps.js'
import { oneRedis } from './one-redis.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(60_000)

const { server, client } = oneRedis({ retryStrategy: () => 20 })
client.on('error', () => {})
const opened: Semaphore[] = []
let name = ''
let tests = 0
const permits: Promise<Permit>[] = []
beforeEach(() => {
  name = `test-${++tests}`
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((semaphore) => semaphore.close()))
  const ended = await Promise.allSettled(permits.splice(0))
  const held = ended.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  await Promise.all(held.map((permit) => permit.release())) // they would be renewed
})

// Found by the simulation (seeds 9 and 10), beside permits, which end within an hour.
describe('a clock of Redis that is set back by a day', () => {
  const SECOND = 1_000_000
  let now: number
  const stores: RedisStore[] = []
  beforeEach(() => (now = 86_400 * SECOND))
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
  })
  const asks = () => {
    const store = redisStore({ host: server.host, port: server.port }, { clock: () => now })
    stores.push(store)
    const { ask } = store.permits!(name, 2000)
    return (step: PermitStep, ticket: number) => ask(step, 'k', [ticket], 1)
  }

  it('leaves permits to holders that renew them, and to others after a time of grace', async () => {
    const [holder, dead, other] = [asks(), asks(), asks()]
    await holder('take', 1)
    now -= 7200 * SECOND
    expect(await other('take', 1)).not.toEqual(['held'])
    now += SECOND / 2
    expect(await holder('renew', 1)).toEqual(['held'])
    now += SECOND / 2
    expect(await other('take', 2)).not.toEqual(['held'])
    await holder('release', 1)
    await dead('take', 1)
    now -= 7200 * SECOND
    expect(await other('take', 3)).not.toEqual(['held'])
    now += SECOND
    expect(await other('take', 4)).toEqual(['held'])
  })

  it('makes no time of grace longer', async () => {
    const ask = asks()
    await ask('poll', 1)
    expect(await ask('take', 2)).not.toEqual(['held'])
    now = 0
    expect(await ask('take', 2)).not.toEqual(['held'])
    now += SECOND
    expect(await ask('take', 2)).toEqual(['held'])
  })

  it('keeps no ticket of a dead process in the queue', async () => {
    const [holder, dead, other] = [asks(), asks(), asks()]
    await holder('take', 1)
    await dead('wait', 1)
    await dead('wait', 2)
    now = 0
    expect(await other('take', 1)).not.toEqual(['held']) // the first of the queue has a permit that it does not claim
    now = 3 * SECOND
    expect(await other('take', 1)).toEqual(['held'])
  })
})

/** To Redis each semaphore is a process of its own. */
function open(options: Partial<SemaphoreOptions> = {}): Semaphore {
  const semaphore = createSemaphore({
    name,
    limit: 1,
    lease: '2s',
    deadline: '5s',
    store: redisStore(client),
    ...options,
  })
  const { acquire } = semaphore
  semaphore.acquire = (...args) => {
    const permit = acquire.apply(semaphore, args)
    permits.push(permit)
    return permit
  }
  opened.push(semaphore)
  return semaphore
}
const taken = async (semaphore: Semaphore, key?: string) =>
  (await semaphore.acquire(key, { maxWait: 0 })).allowed

describe('permits', () => {
  it('are shared by all processes, and free as soon as they are released', async () => {
    const [one, other] = [open({ limit: 2 }), open({ limit: 2 })]
    const held = [await one.acquire(), await other.acquire()]
    expect(await taken(one)).toBe(false)
    await held[1]!.release()
    expect(await taken(one)).toBe(true)
    expect(await taken(one, 'another')).toBe(true)
  })

  it('go to waiting calls in the order in which they came, over all processes', async () => {
    const semaphores = [open(), open(), open()]
    const first = await semaphores[0]!.acquire()
    const served: number[] = []
    const calls: Promise<void>[] = []
    for (let i = 0; i < 30; i++) {
      calls.push(
        semaphores[i % 3]!.acquire().then(async (permit) => {
          served.push(i)
          await permit.release()
        }),
      )
      await until('the ticket to be queued', async () => (await queued()) === i + 1)
    }
    await first.release()
    await Promise.all(calls)
    expect(served).toEqual(Array.from({ length: 30 }, (_, i) => i))
  })

  it('are reported with the time in the store, and as waited for only where none was free', async () => {
    const semaphore = open()
    const events: (PermitWait & { readonly type: string })[] = []
    for (const type of ['granted', 'waited', 'denied'] as const) {
      semaphore.on(type, (event: (typeof events)[number]) => void events.push(event))
    }
    const first = await semaphore.acquire()
    await semaphore.acquire('', { maxWait: 0 })
    const second = semaphore.acquire()
    await until('the ticket to be queued', async () => (await queued()) === 1)
    await first.release()
    await second
    expect(events.map(({ type }) => type)).toEqual(['granted', 'denied', 'waited', 'granted'])
    for (const { decidedBy, storeMs, waitMs } of events) {
      expect([decidedBy, storeMs > 0, storeMs <= waitMs]).toEqual(['store', true, true])
    }
  })

  it('never exceed the limit, however many calls compete', async () => {
    const semaphores = [1, 2, 3].map(() => open({ limit: 5 }))
    let running = 0
    let most = 0
    const work = async (i: number): Promise<void> => {
      await using permit = await semaphores[i % 3]!.acquire()
      expect(permit.allowed).toBe(true)
      most = Math.max(most, ++running)
      await pause(2)
      running--
    }
    await Promise.all(Array.from({ length: 300 }, (_, i) => work(i)))
    expect(most).toBe(5)
    const expiresIn = await command<number>(server, 'PTTL', key()) // no permit is held: the key may go soon
    expect(expiresIn === -2 || (expiresIn > 0 && expiresIn <= 6000)).toBe(true)
  })

  it('pass from holder to waiter without repeated polling', async () => {
    const [one, other] = [open(), open()]
    const held = await one.acquire()
    const waiting = other.acquire()
    await until('a subscription', async () => (await channels()).length === 1)
    const began = performance.now()
    const seen = await monitor(server)
    await held.release()
    const { waitMs } = await waiting
    const timed = Math.ceil((performance.now() - began) / 100)
    const calls = (await seen.stop()).flatMap(stepOf).filter((name) => name !== 'renew') // every 500 ms
    expect(calls.filter((name) => name !== 'poll')).toEqual(['release'])
    expect(calls.length).toBeLessThanOrEqual(2 + timed) // the release, the claim
    expect(waitMs).toBeGreaterThan(0)
  })

  it('increase for waiting calls too when the semaphore is resized', async () => {
    const [one, other] = [open(), open()]
    await one.acquire()
    const waiting = one.acquire('', { maxWait: '30s' })
    await pause(50)
    one.resize(2)
    expect((await waiting).allowed).toBe(true)
    expect(await taken(one)).toBe(false)
    other.resize(3)
    expect(await taken(other)).toBe(true)
  })

  it('are found by the poll when the message is lost', async () => {
    const [one, other] = [open(), open()]
    const held = await one.acquire()
    const waiting = other.acquire()
    await until('a subscription', async () => (await channels()).length === 1)
    await command(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
    await held.release()
    expect((await waiting).allowed).toBe(true)
  })
})

describe('releasing twice', () => {
  it('frees one permit', async () => {
    const semaphore = open({ limit: 2 })
    const held = [await semaphore.acquire(), await semaphore.acquire()]
    await Promise.all([held[0]!.release(), held[0]!.release()])
    await held[0]!.release()
    expect(await taken(semaphore)).toBe(true)
    expect(await taken(semaphore)).toBe(false)
  })
})

describe('a lease', () => {
  it('is renewed for as long as the permit is held', async () => {
    const [one, other] = [open({ lease: '1s' }), open({ lease: '1s' })]
    const held = await one.acquire()
    await pause(2500)
    expect(await taken(other)).toBe(false)
    await held.release()
    expect(await taken(other)).toBe(true)
  })

  it('frees the permit of a killed holder for waiting calls when it ends', async () => {
    const other = open({ lease: '1s' })
    const child = await holder('', '1000')
    expect(await taken(other)).toBe(false)
    const waiting = other.acquire('', { maxWait: '10s' })
    child.kill('SIGKILL')
    expect((await waiting).allowed).toBe(true)
  })

  it('does not let the tickets of a killed process delay others', async () => {
    const [one, other] = [open({ limit: 1 }), open({ limit: 1 })]
    const held = await one.acquire()
    const child = await holder('5')
    await until('five queued tickets', async () => (await queued()) === 5)
    const waiting = other.acquire('', { maxWait: '10s' })
    child.kill('SIGKILL')
    await pause(1100) // until its tickets have expired
    await held.release()
    expect(await waiting).toMatchObject({ allowed: true })
  })

  it('bounds the delay by a ticket whose process died after it was granted a permit', async () => {
    const [one, other] = [open({ lease: '1m' }), open({ lease: '1m' })]
    const held = await one.acquire()
    const child = await holder('1', '60000')
    await until('the ticket to be queued', async () => (await queued()) === 1)
    const waiting = other.acquire('', { maxWait: '10s' })
    child.kill('SIGKILL')
    await held.release()
    expect(await waiting).toMatchObject({ allowed: true })
  })
})

describe('an abort', () => {
  it('removes the ticket from the queue, and the next one gets the permit', async () => {
    const [one, other] = [open(), open()]
    const held = await one.acquire()
    const controller = new AbortController()
    const aborted = one.acquire('', { signal: controller.signal })
    await until('the ticket to be queued', async () => (await queued()) === 1)
    const behind = other.acquire()
    controller.abort(new Error('gone'))
    await expect(aborted).rejects.toThrow('gone')
    await held.release()
    expect((await behind).allowed).toBe(true)
  })

  it('of nearly all calls leaves every permit free', async () => {
    const semaphores = [1, 2].map(() => open({ limit: 3 }))
    const controllers = Array.from({ length: 400 }, () => new AbortController())
    let running = 0
    let most = 0
    const calls = controllers.map(async ({ signal }, i) => {
      const permit = await semaphores[i % 2]!.acquire('', { signal })
      most = Math.max(most, ++running)
      await pause(1)
      running--
      await permit.release()
    })
    const settled = Promise.allSettled(calls)
    for (const [i, controller] of controllers.entries()) {
      if (i % 40 === 0) await pause(3)
      if (i % 5 > 0) controller.abort(new Error('gone'))
    }
    const results = await settled
    expect(most).toBeLessThanOrEqual(3)
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(80)
    const free = await Promise.all([1, 2, 3, 4].map(() => taken(semaphores[0]!)))
    expect(free.filter(Boolean)).toHaveLength(3)
  })
})

describe('Redis', () => {
  it('that restarts without its data leaves permits to their holders and queued tickets in the queue', async () => {
    expectWarnings([], { perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'] }) // where a renewal is due while it restarts
    let now = 0 // stands still, so that the time in which holders renew does not end before they have
    const store = () => redisStore(client, { clock: () => now })
    const [one, other] = [open({ store: store() }), open({ store: store() })]
    const held = await one.acquire()
    const waiting = other.acquire()
    await until('the ticket to be queued', async () => (await queued()) === 1)
    await server.restart()
    await until('the permit to be renewed', async () => (await heldPermits()) === 1)
    await until('the ticket to be queued again', async () => (await queued()) === 1)
    now = 700_000
    await held.release()
    expect((await waiting).allowed).toBe(true)
  })

  it('that is down makes patient calls wait and rejects the others', async () => {
    const warned = expectWarnings(['STORE_DEGRADED', 'STORE_RECOVERED'])
    const semaphore = open({ deadline: '100ms' })
    await semaphore.acquire('warm')
    await server.kill()
    await expect(semaphore.acquire('', { maxWait: 0 })).rejects.toMatchObject({ name: 'StoreError' })
    await expect(semaphore.acquire('', { maxWait: 200 })).rejects.toMatchObject({ name: 'StoreError' })
    const waiting = semaphore.acquire('', { maxWait: '30s' })
    await server.restart()
    expect((await waiting).allowed).toBe(true)
    // Otherwise a reply that comes later would report it, in another test.
    await until('the recovery to be reported', async () => {
      await taken(semaphore, 'another')
      return warned.some(({ code }) => code === 'STORE_RECOVERED')
    })
  })

  it('that lost its data reports a permit that went to others', async () => {
    const lost: string[] = []
    const semaphore = open({ onLost: (key) => lost.push(key) })
    const held = await semaphore.acquire('a')
    await command(server, 'DEL', `${key()}a`)
    expect(await taken(open(), 'a')).toBe(true)
    await until('the loss to be reported', () => lost.length > 0)
    expect(lost).toEqual(['a'])
    await held.release()
    expect(await taken(open(), 'a')).toBe(false)
  })

  it('that holds another type under the key is healed', async () => {
    for (const make of [
      ['SET', key(), 'x'],
      ['RPUSH', key(), 'x'],
      ['HSET', key(), 'a', 'b'],
      ['ZADD', key(), '1', 'a', '9e18', 'b', '5', '', '-5', 'c', '1e300', 'd'],
    ] as const) {
      await command(server, ...(make as unknown as [string, ...string[]]))
      // The scores of the set look like permits from before the clock was set back, which begin a time of grace.
      const permit = await open().acquire('', { maxWait: make[0] === 'ZADD' ? '10s' : 0 })
      expect(permit.allowed).toBe(true)
      await permit.release()
      await command(server, 'DEL', key())
    }
  })
})

describe('close', () => {
  it('rejects waiting calls, empties the queue, and ends the subscription', async () => {
    const [one, other] = [open(), open()]
    const held = await one.acquire()
    const waiting = other.acquire()
    await until('a subscription', async () => (await channels()).length === 1)
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: 'CLOSED' }), other.close()])
    expect(await queued()).toBe(0)
    await until('no subscription', async () => (await channels()).length === 0)
    await held.release()
  })

  it('of the store rejects waiting calls at once', async () => {
    const store = redisStore({ host: server.host, port: server.port })
    const [held, waiting] = [open(), open({ store })]
    await held.acquire()
    const refusal = waiting.acquire('', { maxWait: '1d' }).catch((error: unknown) => error)
    await until('the call to wait', async () => (await queued()) === 1)
    await store.close()
    expect(await refusal).toMatchObject({ code: 'CLOSED' })
  })
})

it('works with node-redis', async () => {
  const nodeRedis = createClient({ socket: { host: server.host, port: server.port } })
  await nodeRedis.connect()
  const [one, other] = [1, 2].map(() => open({ store: redisStore(nodeRedis) }))
  const held = await one!.acquire()
  const waiting = other!.acquire()
  await until('a subscription', async () => (await channels()).length === 1)
  await held.release()
  const permit = await waiting
  expect(permit.allowed).toBe(true)
  await permit.release()
  await other!.close()
  nodeRedis.destroy()
})

it('works with a connection of its own', async () => {
  const store = redisStore({ host: server.host, port: server.port })
  const [one, other] = [1, 2].map(() => open({ store }))
  const held = await one!.acquire()
  const waiting = other!.acquire()
  await until('a subscription', async () => (await channels()).length === 1)
  await pause(1200) // longer than a silence that would end a connection that is owed an answer
  await held.release()
  expect((await waiting).allowed).toBe(true)
  await store.close()
  await until('no subscription', async () => (await channels()).length === 0)
})

/** How many tickets wait, and how many hold a permit, under the key ''. */
const key = () => `sluice:4:${name}:semaphore:`
const queued = () => command<number>(server, 'ZCOUNT', key(), '1', '(1099511627776')
const heldPermits = () => command<number>(server, 'ZCOUNT', key(), '1099511627776', '+inf')
const channels = () => command<string[]>(server, 'PUBSUB', 'CHANNELS', `${key()}to:*`)

const HOLDER = 'packages/core/test/stores/redis/semaphore-holder.ts'
const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))

/** A process that holds one permit, or has so many tickets in the queue. */
async function holder(tickets = '', lease = '2000'): Promise<ChildProcess> {
  const args = [...onSources(), HOLDER, String(server.port), name, lease, tickets]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return child
}
