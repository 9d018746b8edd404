import { RemoteStore } from '@sluice/harness/stores'
import { FakeClock } from '@sluice/testing'
import { createLimiter, fixedWindow, type Limiter } from '../../src/index.js'

/*
 * The store makes a reservation and answers after the deadline: its caller has got another answer, and nobody can settle it.
 */

const policies = [fixedWindow({ limit: 10, window: '365d' })]

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

describe.each(['local', 'allow', 'deny', 'throw'] as const)('under onStoreError %j', (onStoreError) => {
  const open = () => {
    const store = new RemoteStore(new FakeClock().now, undefined, true)
    const options = { policies, store, onStoreError, deadline: '50ms', reservations: {} } as const
    return { store, limiter: createLimiter({ name: 'late', ...options }) }
  }

  /** Reserves, and lets the store's answer come once the deadline has passed. */
  const reserveLate = async (store: RemoteStore, limiter: Limiter): Promise<void> => {
    store.holdReplies()
    const reserved = limiter.reserve('k', { cost: 4, ttl: '30d' }).catch(() => undefined)
    await jest.advanceTimersByTimeAsync(60)
    await reserved
    store.recover()
    await jest.advanceTimersByTimeAsync(0)
  }

  it('gives back a reservation that is answered after the deadline', async () => {
    const { store, limiter } = open()
    await reserveLate(store, limiter)
    expect((await limiter.peek('k')).policies[0]).toMatchObject({ used: 0, held: 0 })
    expect(store.arrived).toEqual(['reserve', 'settle', 'peek'])
  })

  it('settles none where the late answer is a denial', async () => {
    const { store, limiter } = open()
    await limiter.charge('k', { cost: 10 })
    await reserveLate(store, limiter)
    expect(store.arrived).toEqual(['charge', 'reserve'])
  })
})
