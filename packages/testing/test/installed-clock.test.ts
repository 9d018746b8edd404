import { calendarWindow } from '@sluice/calendar'
import { createLimiter, createSemaphore, gcra, type Limiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { startRedis } from '@sluice/harness/redis'
import { RemoteStore } from '@sluice/harness/stores'
import { createQueue } from '@sluice/outbound'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installFakeClock, type InstalledClock } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const MINUTE = 60_000
const policies = [slidingLog({ limit: 1, window: '1m' })]
const before = createLimiter({ name: 'before', policies })
let clock: InstalledClock
let key = 0
beforeEach(() => {
  clock = installFakeClock()
  key++
})
afterEach(() => clock.restore())

describe('installFakeClock', () => {
  it.each<[string, () => Limiter]>([
    ['before it', () => before],
    ['after it', () => createLimiter({ name: 'after', policies })],
  ])('stops the time of a limiter that was made %s', async (_, limiterOf) => {
    const limiter = limiterOf()
    const allows = async (): Promise<boolean> => (await limiter.consume(`k${key}`)).allowed
    expect([await allows(), await allows()]).toEqual([true, false])
    await clock.pass(MINUTE - 1)
    expect(await allows()).toBe(false)
    await clock.pass(1)
    expect([await allows(), await allows()]).toEqual([true, false])
  })

  it('ends a month of the calendar', async () => {
    expectWarnings(['STORE_FORGETS'])
    const limiter = createLimiter({
      policies: [calendarWindow({ limit: 1, every: 'month', timeZone: 'Asia/Tokyo' })],
    })
    const wait = async (): Promise<number> => (await limiter.consume('k')).retryAfterMs
    expect(await wait()).toBe(0)
    for (let month = 0; month < 13; month++) {
      await clock.pass((await wait()) - 1)
      expect(await wait()).toBe(1)
      await clock.pass(1)
      expect(await wait()).toBe(0)
    }
  })

  it('ends waits at their instants, in their order', async () => {
    const limiter = createLimiter({ policies: [gcra({ limit: 60, window: '1m', burst: 1 })] })
    const turns: number[] = []
    const waiting = [1, 2, 3].map(async (n) => {
      await limiter.acquire('k')
      turns.push(n)
    })
    await clock.pass(999)
    expect(turns).toEqual([1])
    await clock.pass(1)
    expect(turns).toEqual([1, 2])
    await clock.pass(MINUTE)
    expect(turns).toEqual([1, 2, 3])
    await Promise.all(waiting)
  })

  it('ends the wait for a permit, and keeps permits that are held', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const held = await semaphore.acquire('k')
    const denied = semaphore.acquire('k', { maxWait: '10m' })
    await clock.pass(10 * MINUTE)
    expect((await denied).allowed).toBe(false)
    await held.release()
    expect((await semaphore.acquire('k')).allowed).toBe(true)
    await semaphore.close()
  })

  it('ends the deadline of a store that does not answer', async () => {
    const store = new RemoteStore(() => 0)
    store.stop()
    const limiter = createLimiter({ name: 'slow', policies, store, deadline: '2s', onStoreError: 'allow' })
    limiter.on('degraded', () => {})
    let decision: unknown
    void limiter.consume('k').then(({ degraded }) => (decision = degraded))
    await clock.pass(1990)
    expect(decision).toBeUndefined()
    await clock.pass(20)
    expect(decision).toBe('timeout')
  })

  it('paces a queue', async () => {
    const limiter = createLimiter({ policies: [gcra({ limit: 60, window: '1h', burst: 1 })] })
    const queue = createQueue({ limiter })
    const done: number[] = []
    const calls = [1, 2].map((n) => queue.run(() => done.push(n)))
    await clock.pass(MINUTE - 1)
    expect(done).toEqual([1])
    await clock.pass(1)
    expect(done).toEqual([1, 2])
    await Promise.all(calls)
    await queue.close()
  })

  it('is followed by the other build of core too', async () => {
    const built = join(resolve('packages/core'), 'dist/cjs/index.js')
    const { createLimiter: create, slidingLog: log } = createRequire(pathToFileURL(built))(built) as {
      createLimiter: typeof createLimiter
      slidingLog: typeof slidingLog
    }
    const limiter = create({ policies: [log({ limit: 1, window: '1m' })] })
    await limiter.consume('k')
    await clock.pass(MINUTE)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it('goes on from where it stands when it is restored, and can be installed again', async () => {
    await before.consume(`k${key}`)
    await clock.pass(MINUTE - 1000)
    clock.restore()
    clock = installFakeClock()
    await clock.pass(1000)
    expect((await before.consume(`k${key}`)).allowed).toBe(true)
  })

  it('is installed once at a time', () => {
    expect(() => installFakeClock()).toThrow('restore() of it first')
  })

  it('leaves a redisStore on the clock of Redis, which warns once', async () => {
    const redis = await startRedis()
    const warned = expectWarnings(['CLOCK_NOT_FAKED'])
    const store = redisStore(`redis://${redis.host}:${redis.port}`)
    const limiter = createLimiter({ name: 'redis', policies, store, deadline: '5s' })
    for (let i = 0; i < 2; i++) await limiter.consume('k')
    await clock.pass(2 * MINUTE)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect(warned).toHaveLength(1)
    await store.close()
    await redis.stop()
  })
})

describe('without it', () => {
  beforeEach(() => clock.restore())

  it('fake timers move no limit, and are reported once', async () => {
    const warned = expectWarnings(['CLOCK_FAKED'])
    jest.isolateModules(() => undefined)
    delete (globalThis as Record<symbol, unknown>)[Symbol.for('sluice.time')]
    const core = await freshCore()
    const limiter = core.createLimiter({ policies: [core.slidingLog({ limit: 1, window: '1m' })] })
    jest.useFakeTimers()
    for (let i = 0; i < 2; i++) await limiter.consume('k')
    jest.useRealTimers()
    expect(warned).toHaveLength(1)
  })

  it('a performance that is replaced alone is reported too, after some calls', async () => {
    const warned = expectWarnings(['CLOCK_FAKED'])
    const shared = Object.getOwnPropertySymbols(globalThis).filter((each) =>
      each.description?.startsWith('sluice.'),
    )
    for (const each of shared) delete (globalThis as Record<symbol, unknown>)[each]
    const core = await freshCore()
    const limiter = core.createLimiter({ policies: [core.slidingLog({ limit: 1, window: '1m' })] })
    await limiter.consume('k')
    const { performance } = globalThis
    Object.defineProperty(globalThis, 'performance', { value: { now: () => 0 }, configurable: true })
    for (let i = 0; i < 200; i++) await limiter.consume('k')
    Object.defineProperty(globalThis, 'performance', { value: performance, configurable: true })
    expect(warned).toHaveLength(1)
  })

  it('a step of the system clock is not reported', async () => {
    const step = jest.spyOn(Date, 'now').mockReturnValue(0)
    await createLimiter({ policies }).consume('k')
    step.mockRestore()
  })
})

/** A copy of core that sees the system's time. */
async function freshCore(): Promise<typeof import('@sluice/core')> {
  let core: typeof import('@sluice/core')
  await jest.isolateModulesAsync(async () => {
    core = await import('@sluice/core')
  })
  return core!
}
