import { getEventListeners } from 'node:events'
import { createSemaphore, memoryStore, type SemaphoreOptions } from '../../src/index.js'
import { outcome } from './permits-elsewhere.js'
import { expectWarnings } from '@sluice/harness/warnings'

/** Timers and the clock of this file are Jest's: nothing sleeps. */
const open = (options: Partial<SemaphoreOptions> = {}) => createSemaphore({ limit: 1, ...options })

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

describe('acquire', () => {
  it('grants as many permits as the limit, and the next one when one is released', async () => {
    const semaphore = open({ limit: 2 })
    const [first] = await Promise.all([semaphore.acquire(), semaphore.acquire()])
    const third = outcome(semaphore.acquire())
    await pass(70)
    expect(third.permit).toBeUndefined()
    await first.release()
    await pass(0)
    expect(third.permit).toMatchObject({ allowed: true, waitMs: 70 })
  })

  it('starts a timer and listens to its signal only where it has to wait', async () => {
    const semaphore = open()
    const { signal } = new AbortController()
    const permit = await semaphore.acquire('', { signal })
    expect(jest.getTimerCount()).toBe(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    const next = semaphore.acquire('', { signal })
    expect(jest.getTimerCount()).toBe(1)
    await permit.release()
    expect((await next).allowed).toBe(true)
    expect(jest.getTimerCount()).toBe(0)
  })

  it('serves waiting calls in their order, and grants no later call before them', async () => {
    const semaphore = open()
    const served: number[] = []
    let permit = await semaphore.acquire()
    const calls = [1, 2, 3].map((i) =>
      semaphore.acquire().then((got) => {
        served.push(i)
        permit = got
      }),
    )
    for (let i = 1; i <= 3; i++) {
      const passing = await semaphore.acquire('', { maxWait: 0 })
      expect(passing.allowed).toBe(false)
      await permit.release()
      await pass(0)
    }
    await Promise.all(calls)
    expect(served).toEqual([1, 2, 3])
  })

  it('is denied when no permit is free within maxWait, and leaves the queue', async () => {
    const semaphore = open()
    const first = await semaphore.acquire()
    const second = outcome(semaphore.acquire('', { maxWait: 50 }))
    const third = outcome(semaphore.acquire())
    await pass(49)
    expect(second.permit).toBeUndefined()
    await pass(1)
    expect(second.permit).toMatchObject({ allowed: false, waitMs: 50 })
    await first.release()
    await pass(0)
    expect(third.permit!.allowed).toBe(true)
  })

  it('is denied at once with maxWait 0', async () => {
    const semaphore = open()
    await semaphore.acquire()
    expect(await semaphore.acquire('', { maxWait: 0 })).toMatchObject({ allowed: false, waitMs: 0 })
  })

  it('keeps permits apart by key', async () => {
    const semaphore = open()
    expect(await semaphore.acquire('a')).toMatchObject({ allowed: true })
    expect(await semaphore.acquire('b')).toMatchObject({ allowed: true })
    expect(await semaphore.acquire('a', { maxWait: 0 })).toMatchObject({ allowed: false })
  })

  it('shares permits between semaphores of one name and store', async () => {
    const store = memoryStore()
    const [one, other, stranger] = ['a', 'a', 'b'].map((name) => open({ name, store }))
    const held = await one!.acquire()
    const waiting = outcome(other!.acquire())
    expect((await stranger!.acquire('', { maxWait: 0 })).allowed).toBe(true)
    await held.release()
    await pass(0)
    expect(waiting.permit!.allowed).toBe(true)
  })

  it('grants a semaphore nothing above its own limit when another of that name has a higher one', async () => {
    const store = memoryStore()
    const [wide, narrow] = [3, 1].map((limit) => open({ name: 'a', store, limit }))
    const held = [await wide!.acquire(), await wide!.acquire()]
    const waiting = outcome(narrow!.acquire())
    expect((await wide!.acquire('', { maxWait: 0 })).allowed).toBe(false) // a ticket waits
    await held[0]!.release()
    await pass(0)
    expect(waiting.permit).toBeUndefined()
    await held[1]!.release()
    await pass(0)
    expect(waiting.permit!.allowed).toBe(true)
  })
})

describe('release', () => {
  it('frees one permit however often it is called', async () => {
    const semaphore = open()
    const first = await semaphore.acquire()
    const waiting = [outcome(semaphore.acquire()), outcome(semaphore.acquire())]
    await Promise.all([first.release(), first.release(), first.release()])
    await pass(0)
    expect(waiting.map(({ permit }) => permit?.allowed)).toEqual([true, undefined])
  })

  it('frees nothing after a denial', async () => {
    const semaphore = open()
    await semaphore.acquire()
    const denied = await semaphore.acquire('', { maxWait: 0 })
    await denied.release()
    expect((await semaphore.acquire('', { maxWait: 0 })).allowed).toBe(false)
  })

  it('happens at the end of a block with `using` and with `await using`', async () => {
    const semaphore = open()
    {
      using permit = await semaphore.acquire()
      expect(permit.allowed).toBe(true)
    }
    {
      await using permit = await semaphore.acquire('', { maxWait: 0 })
      expect(permit.allowed).toBe(true)
    }
    expect((await semaphore.acquire('', { maxWait: 0 })).allowed).toBe(true)
  })
})

describe('an abort', () => {
  it('is listened to once by all calls with its signal, and not after them', async () => {
    const semaphore = open()
    const first = await semaphore.acquire()
    const { signal } = new AbortController()
    const calls = Array.from({ length: 20 }, () => semaphore.acquire('', { signal, maxWait: 1000 }))
    await pass(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1) // Node warns of a leak above ten
    await pass(1000)
    await Promise.all(calls)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    await first.release()
  })

  it('rejects with the reason and leaves the queue', async () => {
    const semaphore = open()
    const first = await semaphore.acquire()
    const controller = new AbortController()
    const aborted = outcome(semaphore.acquire('', { signal: controller.signal }))
    const behind = outcome(semaphore.acquire())
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toEqual(new Error('gone'))
    await first.release()
    await pass(0)
    expect(behind.permit!.allowed).toBe(true)
  })

  it('of most waiting calls never lets more run than the limit, and leaves all permits free', async () => {
    const semaphore = open({ limit: 3 })
    let running = 0
    let most = 0
    const work = async (signal: AbortSignal): Promise<void> => {
      const permit = await semaphore.acquire('', { signal, maxWait: '1m' })
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 10))
      running--
      await permit.release()
    }
    const controllers = Array.from({ length: 300 }, () => new AbortController())
    const calls = controllers.map(({ signal }) => work(signal))
    const settled = Promise.allSettled(calls)
    for (const [i, controller] of controllers.entries()) {
      if (i % 30 === 0) await pass(5)
      if (i % 3 > 0) controller.abort(new Error('gone'))
    }
    await pass(2000)
    const results = await settled
    expect(most).toBe(3)
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(100)
    const free = await Promise.all([1, 2, 3, 4].map(() => semaphore.acquire('', { maxWait: 0 })))
    expect(free.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
  })

  it('before the call takes no permit', async () => {
    const semaphore = open()
    await expect(semaphore.acquire('', { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no')
    expect((await semaphore.acquire('', { maxWait: 0 })).allowed).toBe(true)
  })
})

describe('close', () => {
  it('rejects waiting calls and every later call', async () => {
    const semaphore = open()
    await semaphore.acquire()
    const waiting = outcome(semaphore.acquire())
    await semaphore.close()
    expect(waiting.error).toMatchObject({ name: 'StoreError', code: 'CLOSED' })
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('leaves held permits to their holders when others share the store', async () => {
    const store = memoryStore()
    const [leaving, staying] = [1, 2].map(() => open({ name: 'shared', store }))
    const held = await leaving!.acquire()
    await leaving!.close()
    expect((await staying!.acquire('', { maxWait: 0 })).allowed).toBe(false)
    await held.release()
    expect((await staying!.acquire('', { maxWait: 0 })).allowed).toBe(true)
  })

  it('of the store rejects waiting calls at once, and leaves no timer behind', async () => {
    const store = memoryStore()
    const semaphore = open({ name: 'shared', store })
    await semaphore.acquire()
    const waiting = outcome(semaphore.acquire('', { maxWait: '1d' }))
    await pass(0)
    await store.close()
    await pass(0)
    expect(waiting.error).toMatchObject({ name: 'StoreError', code: 'CLOSED' })
    expect([semaphore.waiting, jest.getTimerCount()]).toEqual([0, 0])
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('leaves no timer behind', async () => {
    const semaphore = open()
    await semaphore.acquire()
    outcome(semaphore.acquire())
    await semaphore.close()
    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('events', () => {
  it('have their type and the name of their semaphore', async () => {
    const semaphore = open({ name: 'jobs', store: memoryStore() })
    const events: object[] = []
    for (const type of ['granted', 'waited', 'denied', 'released', 'lost'] as const) {
      semaphore.on(type, (event) =>
        events.push({ type: event.type, semaphore: event.semaphore, heard: type }),
      )
    }
    const first = await semaphore.acquire()
    const second = semaphore.acquire()
    await semaphore.acquire('', { maxWait: 0 })
    await first.release()
    await second
    const types = ['granted', 'denied', 'released', 'waited', 'granted']
    expect(events).toEqual(types.map((type) => ({ type, semaphore: 'jobs', heard: type })))
  })

  const rejects: () => unknown = () => Promise.reject(new Error('oops'))
  const throws = (): never => {
    throw new Error('oops')
  }
  it.each([
    ['throws', throws],
    ['rejects', rejects],
  ])('change no call where a listener %s, and cause one warning of the process', async (_, listener) => {
    const warned = expectWarnings(['LISTENER_FAILED'])
    const semaphore = open({ name: 'jobs', store: memoryStore(), onLost: () => {} })
    const heard: string[] = []
    semaphore.on('granted', listener)
    semaphore.on('granted', ({ type }) => heard.push(type))
    for (let i = 0; i < 2; i++) await (await semaphore.acquire()).release()
    await pass(0)
    expect(heard).toEqual(['granted', 'granted'])
    const message = "semaphore 'jobs': a listener of 'granted' threw: Error: oops"
    expect(warned).toEqual([{ code: 'LISTENER_FAILED', message }])
  })
})

describe('options', () => {
  it('that cannot work are refused while it is made', () => {
    const bad: readonly [Partial<SemaphoreOptions>, string][] = [
      [{ limit: 0 }, 'INVALID_LIMIT'],
      [{ limit: 1.5 }, 'INVALID_LIMIT'],
      [{ limit: NaN }, 'INVALID_LIMIT'],
      [{ limit: '3' as never }, 'INVALID_LIMIT'],
      [{ lease: '999ms' }, 'INVALID_DURATION'],
      [{ lease: '2h' }, 'INVALID_DURATION'],
      [{ deadline: 0 }, 'INVALID_DURATION'],
      [{ name: 'a\nb' }, 'INVALID_NAME'],
      [{ store: memoryStore() }, 'NAME_REQUIRED'],
      [{ name: 'a', store: {} as never }, 'INVALID_OPTION'],
      [{ onLost: 1 as never }, 'INVALID_OPTION'],
    ]
    for (const [options, code] of bad) {
      expect(() => open(options)).toThrow(expect.objectContaining({ name: 'PolicyError', code }))
    }
  })

  it('of a call that cannot work are refused before a permit is taken', async () => {
    const semaphore = open()
    for (const maxWait of [-1, NaN, '25h', '2d'] as never[]) {
      await expect(semaphore.acquire('', { maxWait })).rejects.toMatchObject({ code: 'INVALID_DURATION' })
    }
    for (const options of [null, 0, 5000, '1s'] as never[]) {
      await expect(semaphore.acquire('', options)).rejects.toMatchObject({
        name: 'InputError',
        code: 'INVALID_DURATION',
        message: expect.stringContaining("an object like { maxWait: '10s' }"),
      })
    }
    await expect(semaphore.acquire(1 as never)).rejects.toMatchObject({ code: 'INVALID_KEY' })
    await expect(semaphore.acquire({ maxWait: 0 } as never)).rejects.toMatchObject({
      name: 'InputError',
      code: 'INVALID_KEY',
      message: expect.stringContaining('write acquire(key, { maxWait })'),
    })
    expect((await semaphore.acquire('', { maxWait: 0 })).allowed).toBe(true)
  })
})

describe('resize', () => {
  it('to a higher limit grants permits to waiting calls of every key, at once and in their order', async () => {
    const semaphore = open()
    await Promise.all(['a', 'b'].map((key) => semaphore.acquire(key)))
    const waiting = ['a', 'a', 'b'].map((key) => outcome(semaphore.acquire(key)))
    semaphore.resize(2)
    await pass(0)
    expect(waiting.map(({ permit }) => permit?.allowed)).toEqual([true, undefined, true])
    expect(semaphore.limit).toBe(2)
  })

  it('to a lower limit grants no permit until enough have been released', async () => {
    const semaphore = open({ limit: 3 })
    const held = await Promise.all([1, 2, 3].map(() => semaphore.acquire()))
    const waiting = outcome(semaphore.acquire())
    semaphore.resize(1)
    for (const permit of held.slice(1)) await permit.release()
    await pass(0)
    expect(waiting.permit).toBeUndefined()
    await held[0]!.release()
    await pass(0)
    expect(waiting.permit?.allowed).toBe(true)
  })

  it('to a higher limit reaches every waiting call, however many there are', async () => {
    const semaphore = open()
    const calls = Array.from({ length: 20_000 }, () => semaphore.acquire())
    semaphore.resize(20_000)
    await pass(0)
    expect(semaphore.inUse).toBe(20_000)
    await Promise.all(calls)
  })

  it('to a lower limit holds for every waiting call, however many there are', async () => {
    const semaphore = open({ limit: 10 })
    const first = await Promise.all(Array.from({ length: 10 }, () => semaphore.acquire()))
    const most = { running: 0 }
    const calls = Array.from({ length: 300 }, async () => {
      await using permit = await semaphore.acquire()
      expect(permit.allowed).toBe(true)
      most.running = Math.max(most.running, semaphore.inUse)
      await Promise.resolve()
    })
    semaphore.resize(2)
    for (const permit of first) await permit.release()
    await Promise.all(calls)
    expect(most.running).toBe(2)
  })

  it.each([0, 1.5, NaN, 1_000_001])('to %d is refused', (limit) => {
    const semaphore = open()
    expect(() => semaphore.resize(limit)).toThrow(expect.objectContaining({ code: 'INVALID_LIMIT' }))
    expect(semaphore.limit).toBe(1)
  })
})
