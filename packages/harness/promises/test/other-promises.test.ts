/**
 * @jest-environment ./packages/harness/promises/environment.js
 * @jest-environment-options {"promise": "zone.js"}
 */
import { until } from '@sluice/harness/redis'
import { RemoteStore } from '@sluice/harness/stores'
import { createRequire } from 'node:module'
import {
  consumeAll,
  createLimiter,
  createSemaphore,
  fixedWindow,
  type LimiterOptions,
} from '../../../core/src/index.js'
import { guard, keyspaceOver, type Store, type Update } from '../../../core/src/stores/authoring.js'
import { PermitsElsewhere } from '../../../core/test/semaphore/permits-elsewhere.js'

jest.setTimeout(10_000) // a promise that is not seen as one never ends its call

/** What async functions return here is no instance of any of them. */
const { Promise: ofZone } = globalThis
const Native = (async () => {})().constructor as PromiseConstructor
const PROMISES: readonly [string, PromiseConstructor][] = [
  ['zone.js', ofZone],
  ['bluebird', createRequire(__filename)('bluebird')],
  ['a subclass', class OwnPromise<T> extends Native<T> {}],
]

let now = 1_767_225_600_000_000
const elsewhere = (): RemoteStore => new RemoteStore(() => now)
const limiterOn = (store: Store, options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies: [fixedWindow({ limit: 2, window: '1h' })], store, ...options })
const thrice = async (call: () => Promise<{ allowed: boolean }>): Promise<boolean[]> => [
  (await call()).allowed,
  (await call()).allowed,
  (await call()).allowed,
]

describe.each(PROMISES)('under the Promise of %s', (_, OtherPromise) => {
  beforeAll(() => void (globalThis.Promise = OtherPromise))
  afterAll(() => void (globalThis.Promise = ofZone))

  it('a call on several keys over two stores is charged to both or to none', async () => {
    const [tenant, user] = [limiterOn(elsewhere()), limiterOn(elsewhere())]
    const call = () =>
      consumeAll([
        { limiter: tenant, key: 'acme' },
        { limiter: user, key: 'ann' },
      ])
    expect(await thrice(call)).toEqual([true, true, false])
    expect((await tenant.peek('acme')).remaining).toBe(0)
  })

  it('leases serve their units', async () => {
    const limiter = limiterOn(elsewhere(), { leases: { size: 10, ttl: '1s' } })
    expect(await thrice(() => limiter.consume('k'))).toEqual([true, true, false])
    await limiter.close()
  })

  it.each(['local', 'deny'] as const)('turns are booked in the mode %s', async (onStoreError) => {
    const limiter = limiterOn(elsewhere(), { onStoreError })
    expect(await thrice(() => limiter.acquire('k', { maxWait: 10 }))).toEqual([true, true, false])
  })

  it('a semaphore elsewhere grants its permits', async () => {
    const store = new PermitsElsewhere()
    const semaphore = createSemaphore({ name: 'jobs', limit: 1, store })
    expect((await semaphore.acquire()).allowed).toBe(true)
    store.answerAll('waiting')
    const waiting = semaphore.acquire()
    await until('the ticket to wait', () => store.calls.length === 2)
    store.answerAll('held')
    semaphore.resize(2)
    expect((await waiting).allowed).toBe(true)
    expect(store.calls).toEqual(['wait 1', 'wait 2', 'poll 2'])
    await semaphore.close()
  })

  it('the rejection of a listener is a warning', async () => {
    const limiter = createLimiter({ policies: [fixedWindow({ limit: 2, window: '1h' })] })
    const warned = new Promise((heard) => limiter.on('warning', heard))
    const rejecting: () => unknown = async () => Promise.reject(new Error('no disk'))
    const printed = jest.spyOn(console, 'error').mockImplementation() // zone.js prints a rejection before it is handled
    limiter.on('decision', rejecting)
    await limiter.consume('k')
    expect(await warned).toMatchObject({
      code: 'LISTENER_FAILED',
      message: expect.stringContaining('no disk'),
    })
    printed.mockRestore()
  })
})

describe('what has a `then` and nothing else', () => {
  /** Calls back in the same tick, as a promise never does. */
  const at = (value: unknown) => ({ then: (resolved: (value: unknown) => void) => resolved(value) }) as never
  const failed = { then: (_: unknown, rejected: (error: Error) => void) => rejected(new Error('no disk')) }

  it('is the start of a store, and the answers of its updates', async () => {
    const kept = new Map<string, Uint8Array | undefined>()
    const update: Update = (id, change) => {
      const { state, result } = change(kept.get(id), now++)
      kept.set(id, state)
      return at(result)
    }
    const store: Store = {
      guard,
      start: () => at(undefined),
      keyspace: (name, policies, report) => keyspaceOver(update, name, policies, report),
      now: () => now,
      close: () => at(undefined),
    }
    const limiter = limiterOn(store, { onStoreError: 'throw' })
    expect(await thrice(() => limiter.consume('k'))).toEqual([true, true, false])
  })

  it('is a failure of a listener', async () => {
    const limiter = createLimiter({ policies: [fixedWindow({ limit: 2, window: '1h' })] })
    const warned = new Promise((heard) => limiter.on('warning', heard))
    limiter.on('decision', () => failed as never)
    await limiter.consume('k')
    expect(await warned).toMatchObject({ code: 'LISTENER_FAILED' })
  })
})
