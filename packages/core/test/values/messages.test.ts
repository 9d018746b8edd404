import { createLimiter, createSemaphore, slidingLog } from '../../src/index.js'
import { nearestTo } from '../../src/internal.js'

const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1m' })] })

/* Values as other packages take them, or as people write them at first. */
describe('a message says what to write', () => {
  it.each<[unknown, string]>([
    ['15 min', "write '15m'"],
    ['1 hour', "write '1h'"],
    ['2 Hours', "write '2h'"],
    ['1w', "write '7d'"],
    ['10 s', "write '10s'"],
    ['60 seconds', "write '1m'"],
    ['100 ms', "write '100ms'"],
    ['100 milliseconds', "write '100ms'"],
    ['1.5h', "write '90m'"],
    ['60000', 'write 60000'],
  ])('for the window %p', async (window, instead) => {
    expect(() => slidingLog({ limit: 1, window: window as string })).toThrow(RegExp(`got .*; ${instead}$`))
    await expect(limiter.block('k', window as string)).rejects.toThrow(RegExp(`; ${instead}$`))
  })

  it.each<[unknown]>([['1 month'], ['soon'], [''], ['1m30s'], [{}], [null]])(
    'and guesses nothing for %p',
    (window) => {
      expect(() => slidingLog({ limit: 1, window: window as string })).toThrow(/got [^;]*$/)
    },
  )

  it('for a limit that is a text', () => {
    expect(() => slidingLog({ limit: '100' as never, window: '1m' })).toThrow(/got "100"; write 100$/)
    expect(() => slidingLog({ limit: '15 min' as never, window: '1m' })).toThrow(/got "15 min"$/)
  })

  it('for policies that are no list', () => {
    const policies = slidingLog({ limit: 1, window: '1m' })
    expect(() => createLimiter({ policies: policies as never })).toThrow('such as [gcra({')
  })
})

describe('the nearest name', () => {
  it.each([
    ['limti', 'limit'],
    ['windowMs', 'window'],
    ['Limit', 'limit'],
    ['stroe', 'store'],
    ['requestPropertyName', 'requestProperty'],
    ['passOnStoreError', 'onStoreError'],
    ['keyGenerator', undefined],
    ['message', undefined],
    ['handler', undefined],
    ['points', undefined],
    ['max', undefined],
    ['insuranceLimiter', undefined],
    ['ttl', undefined],
  ])('to %s is %s', (name, near) => {
    const names = [
      'limit',
      'limiter',
      'window',
      'store',
      'key',
      'name',
      'headers',
      'tag',
      'requestProperty',
      'onStoreError',
    ]
    expect(nearestTo(name, names)).toBe(near)
  })
})

describe('an event that does not exist', () => {
  it('is refused by a limiter and a semaphore, with those that do', () => {
    expect(() => limiter.on('denied' as never, () => {})).toThrow(
      expect.objectContaining({
        name: 'InputError',
        code: 'INVALID_OPTION',
        message: expect.stringContaining('decision, '),
      }),
    )
    const semaphore = createSemaphore({ limit: 1 })
    expect(() => semaphore.on('toString' as never, () => {})).toThrow('granted')
  })
})
