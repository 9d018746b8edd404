import { type AcquireOptions, createLimiter, gcra } from '../../src/index.js'
import { CHECKED, KEY } from '../../src/internal.js'

const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1h' })] })

/** Options for a key, with the marks of those that were checked. */
function checked(key: string, more?: AcquireOptions): AcquireOptions {
  const options = { cost: 1, maxWait: 0, [KEY]: key, [CHECKED]: {}, ...more }
  options[CHECKED] = options
  return options
}

describe('options of acquire that its caller has checked', () => {
  it('are taken as they are', async () => {
    const policies = [gcra({ limit: 3, window: '1h' })]
    const decision = await limiter.acquire('a', checked('a', { cost: 2, policies }))
    expect(decision).toMatchObject({ allowed: true, limit: 3, remaining: 1 })
  })

  it('are checked anew in a copy', async () => {
    const copy = { ...checked('b'), cost: -1 }
    await expect(limiter.acquire('b', copy)).rejects.toMatchObject({ code: 'INVALID_COST' })
    await expect(limiter.acquire('b', { ...copy, cost: 1 })).resolves.toMatchObject({ remaining: 9 })
  })

  it('have nothing to say about another key', async () => {
    const options = checked('c')
    await limiter.acquire('c', options)
    await limiter.acquire('d', options)
    expect(await limiter.peek('c')).toMatchObject({ remaining: 9 })
    await expect(limiter.acquire(1 as never, options)).rejects.toMatchObject({ code: 'INVALID_KEY' })
  })
})
