import {
  createLimiter,
  gcra,
  type Keyspace,
  type LimiterOptions,
  memoryStore,
  type Store,
  StoreError,
} from '../src/index.js'

const policies = [gcra({ limit: 10, window: '1s' })]

/** A store elsewhere, whose every answer is what `reply` gives. */
function remote(reply: () => Promise<never>): Store {
  const keyspace = new Proxy({} as Keyspace, { get: () => reply })
  return { keyspace: () => keyspace, now: () => performance.now() * 1000, close: () => {} }
}

const silent = remote(() => new Promise(() => {}))
const failing = remote(() => Promise.reject(new StoreError('STORE_OOM', 'no room')))
const open = (store: Store, options: Partial<LimiterOptions>) =>
  createLimiter({ name: 'api', policies, store, ...options })

describe('a store that fails', () => {
  it('makes a call throw unless something else is asked for', async () => {
    await expect(open(failing, {}).consume('k')).rejects.toMatchObject({ code: 'STORE_OOM' })
  })

  it('lets calls pass that are to be allowed, and says why', async () => {
    const limiter = open(failing, { onStoreError: 'allow' })
    const expected = { allowed: true, degraded: 'oom', reason: undefined, retryAfterMs: 0 }
    expect(await limiter.consume('k')).toMatchObject(expected)
    expect(await limiter.peek('k')).toMatchObject(expected)
    expect(await limiter.acquire('k')).toMatchObject(expected)
  })

  it('denies calls that are to be denied, without the looks of a limit', async () => {
    const limiter = open(failing, { onStoreError: 'deny' })
    const expected = { allowed: false, degraded: 'oom', reason: undefined, retryAfterMs: 1000 }
    expect(await limiter.consume('k')).toMatchObject(expected)
    expect(await limiter.acquire('k')).toMatchObject(expected)
  })

  it('denies nothing in shadow mode', async () => {
    const limiter = open(failing, { onStoreError: 'deny', enforce: false })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: true, degraded: 'oom' })
  })

  it('leaves nothing to settle', async () => {
    const decision = await open(failing, { onStoreError: 'allow' }).consume('k')
    await expect(decision.settle(5)).resolves.toBeUndefined()
  })

  it('makes what nothing can stand in for reject', async () => {
    await expect(open(failing, { onStoreError: 'allow' }).refund('k')).rejects.toMatchObject({
      code: 'STORE_OOM',
    })
  })
})

describe('a store that does not answer', () => {
  beforeEach(() => jest.useFakeTimers())
  afterEach(() => jest.useRealTimers())

  it('is waited for until the deadline and no longer', async () => {
    const limiter = open(silent, { deadline: '80ms', onStoreError: 'allow' })
    let degraded: string | undefined
    void limiter.consume('k').then((decision) => (degraded = decision.degraded))
    await jest.advanceTimersByTimeAsync(79)
    expect(degraded).toBeUndefined()
    await jest.advanceTimersByTimeAsync(1)
    expect(degraded).toBe('timeout')
  })

  it('leaves no timer behind when it answers', async () => {
    const limiter = open(failing, { onStoreError: 'allow' })
    await limiter.consume('k')
    expect(jest.getTimerCount()).toBe(0)
  })
})

it.each([{ onStoreError: 'ignore' }, { deadline: '2m' }, { deadline: 0 }])('refuses %p', (options) => {
  expect(() => open(memoryStore(), options as Partial<LimiterOptions>)).toThrow(
    expect.objectContaining({ name: 'PolicyError' }),
  )
})
