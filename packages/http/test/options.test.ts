import { createLimiter, memoryStore, PolicyError, slidingLog } from '@sluice/core'
import { guardOf, pass, type PlainOptions } from './plain-platform.js'

const policies = [slidingLog({ limit: 99, window: '1m' })]
const limiter = createLimiter({ policies })
const store = memoryStore()

afterAll(() => Promise.all([limiter.close(), store.close()]))

describe('a window from the environment', () => {
  const window: string = ['1', 'm'].join('')

  it('may be any string, and is checked when the limiter is made', () => {
    expect(() => guardOf({ limit: 1, window })).not.toThrow()
    expect(() => guardOf({ limit: 1, window: `${window} ` })).toThrow(PolicyError)
    expect(() => slidingLog({ limit: 1, window: '' })).toThrow('window must be')
  })
})

describe('options of a guard', () => {
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no limit at all', {}],
    ['a limit without a window', { limit: 1 }],
    ['a window without a limit', { window: '1m' }],
    ['a function of policies and a limit without a window', { policies: () => policies, limit: 1 }],
    ['an option of another library', { limit: 1, window: '1m', windowMs: 1000 }],
    ['an option named like a property of every object', { limit: 1, window: '1m', constructor: 1 }],
    ['something else as a limiter', { limiter: {} }],
    ['limiter and limit', { limiter, limit: 1 }],
    ['limiter and window', { limiter, window: '1m' }],
    ['limiter and policies', { limiter, policies }],
    ['limiter and tiers', { limiter, tiers: [policies] }],
    ['tiers that are not lists', { limit: 1, window: '1m', tiers: policies }],
    ['limiter and name', { limiter, name: 'api' }],
    ['limiter and store', { limiter, store }],
    ['limiter and enforce', { limiter, enforce: false }],
    ['limit and policies', { limit: 1, window: '1m', policies }],
    ['window and policies', { window: '1m', policies }],
    ['policies that are not a list', { policies: policies[0] }],
    ['a key that is not a function', { limiter, key: 'x-api-key' }],
    ['a cost that is not a function', { limiter, cost: 3 }],
    ['a skip that is not a function', { limiter, skip: true }],
    ['a shouldCharge that is not a function', { limiter, shouldCharge: false }],
    ['an onDenied that is not a function', { limiter, onDenied: 'slow down' }],
    ['an unknown format of headers', { limiter, headers: 'draft-5' }],
    ['a list of headers with an unknown format', { limiter, headers: ['ietf', 'draft-5'] }],
    ['two drafts at once', { limiter, headers: ['draft-6', 'draft-7'] }],
    ['header names that are no object', { limiter, headerNames: 'X-Limit' }],
    ['a name for an unknown header', { limiter, headerNames: { 'X-Limit': 'X-Other' } }],
    ['a header name with a space', { limiter, headerNames: { 'Retry-After': 'Retry After' } }],
    ['true for a header name', { limiter, headerNames: { 'Retry-After': true } }],
    [
      'one name for two headers',
      { limiter, headerNames: { 'X-RateLimit-Limit': 'x-n', 'X-RateLimit-Reset': 'X-N' } },
    ],
    ['an allow that is neither a list nor a function', { limiter, allow: '10.0.0.0/8' }],
    ['a deny that is neither a list nor a function', { limiter, deny: true }],
    ['an onExceeded that is not a function', { limiter, onExceeded: 'log' }],
    ['a list of headers with a hole', { limiter, headers: [undefined] }],
    ['headers: true', { limiter, headers: true }],
    ['the former name of shouldCharge', { limiter, charge: () => true }],
    ['the former name of resetAs', { limiter, reset: 'delta' }],
    ['an unknown resetAs', { limiter, resetAs: 'date' }],
    ['limits that are no list', { limits: { limiter } }],
    ['no limits', { limits: [] }],
    ['17 limits', { limits: Array.from({ length: 17 }, () => ({ limiter })) }],
    ['limits and limit', { limits: [{ limiter }], limit: 1 }],
    ['limits and limiter', { limits: [{ limiter }], limiter }],
    ['limits and name', { limits: [{ limiter }], name: 'api' }],
    ['limits and penalty', { limits: [{ limiter }], penalty: { block: '1m' } }],
    ['limits and maxWait', { limits: [{ limiter }], maxWait: '1s' }],
    ['limits of one name', { limits: [{ policies }, { policies }] }],
    ['a limit without a window in limits', { limits: [{ limit: 1 }] }],
    ['headers in one of limits', { limits: [{ limiter, headers: 'ietf' }] }],
    ['a list of callers in one of limits', { limits: [{ limiter, allow: [] }] }],
    ['a key in one of limits that is no function', { limits: [{ limiter, key: 'x' }] }],
    ['nothing in limits', { limits: [undefined] }],
  ])('are refused with INVALID_OPTION: %s', (_, options) => {
    expect(() => guardOf(options as PlainOptions)).toThrow(
      expect.objectContaining({ constructor: PolicyError, code: 'INVALID_OPTION' }),
    )
  })

  it.each([
    ['shouldCarge', "did you mean 'shouldCharge'?"],
    ['limist', "did you mean 'limit'?"],
    ['keyGenerator', 'npx @sluice/cli option '],
    ['skipFailedRequests', 'npx @sluice/cli option '],
  ])('are refused under the name %s, and the message says where to look', (name, advice) => {
    expect(() => guardOf({ limiter, [name]: true })).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(`^there is no option '${name}' of rateLimit: .*`),
      }),
    )
    expect(() => guardOf({ limiter, [name]: true })).toThrow(advice)
  })

  it('need a name with a store', () => {
    const options = { store, limit: 1, window: '1m' } as const
    expect(() => guardOf(options)).toThrow(expect.objectContaining({ code: 'NAME_REQUIRED' }))
  })

  it.each<[string, PlainOptions]>([
    ['limit and window', { limit: 2, window: '1m' }],
    ['a list of policies', { policies }],
    ['a limiter', { limiter }],
    ['a store with a name', { policies, store, name: 'orders' }],
    ['options left undefined', { limiter, limit: undefined, key: undefined } as unknown as PlainOptions],
    ['an empty list of headers', { limiter, headers: [] }],
    ['limits', { limits: [{ limiter }, { name: 'own', policies }] }],
    [
      'limits with a store for those without a limiter',
      { limits: [{ limiter }, { name: 'own', policies }], store },
    ],
  ])('may be %s', async (_, options) => {
    expect((await pass([guardOf(options)])).status).toBe(200)
  })

  it('name the limiter', async () => {
    const { headers } = await pass([guardOf({ policies, name: 'orders', headers: 'ietf' })])
    expect(headers['RateLimit']).toMatch(/^"orders";/)
  })

  it('name the limiter default if no name is given', async () => {
    const { headers } = await pass([guardOf({ policies, headers: 'ietf' })])
    expect(headers['RateLimit']).toMatch(/^"default";/)
  })
})
