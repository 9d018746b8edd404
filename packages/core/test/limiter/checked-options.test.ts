import { createLimiter, gcra } from '../../src/index.js'
import { CheckedOptions } from '../../src/internal.js'

const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1h' })] })
const { signal } = new AbortController()

describe('options of acquire that its caller has checked', () => {
  it('are taken as they are', async () => {
    const limited = [gcra({ limit: 3, window: '1h' })]
    const decision = await limiter.acquire('a', new CheckedOptions('a', 2, limited, 0, signal))
    expect(decision).toMatchObject({ allowed: true, limit: 3, remaining: 1 })
  })

  it('are checked anew in a copy', async () => {
    const copy = Object.assign({}, new CheckedOptions('b', 1, undefined, 0, signal), { cost: -1 })
    await expect(limiter.acquire('b', copy)).rejects.toMatchObject({ code: 'INVALID_COST' })
    await expect(limiter.acquire('b', Object.assign(copy, { cost: 1 }))).resolves.toMatchObject({
      remaining: 9,
    })
  })

  it('have nothing to say about another key', async () => {
    const options = new CheckedOptions('c', 1, undefined, 0, signal)
    await limiter.acquire('c', options)
    await limiter.acquire('d', options)
    expect(await limiter.peek('c')).toMatchObject({ remaining: 9 })
    await expect(limiter.acquire(1 as never, options)).rejects.toMatchObject({ code: 'INVALID_KEY' })
  })
})
