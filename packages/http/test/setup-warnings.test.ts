import { createLimiter, type Limiter, type LimiterOptions, memoryStore, slidingLog } from '@sluice/core'
import { byApiKey, byIp, byUser, decisionAbout, joinKey } from '../src/index.js'
import {
  FROM_HOME,
  guardOf,
  pass,
  type PlainOptions,
  type PlainRequest,
  PlainResponse,
} from './plain-platform.js'
import { expectWarnings } from '@sluice/harness/warnings'

const FROM_IPV6 = { address: '2001:db8:1:2:3:4:5:6', socketAddress: '2001:db8:1:2:3:4:5:6' }
const FORWARDED_TWICE = {
  ...FROM_HOME,
  headers: { 'x-forwarded-for': '192.0.2.9', forwarded: 'for=192.0.2.9' },
}
const FORWARDED = { ...FROM_HOME, headers: { 'x-forwarded-for': '198.51.100.1' } }
let limiter: Limiter
let warnings: { code: string; message: string }[]

beforeEach(() => {
  limiter = listened()
  warnings = []
})

describe('a setup warning is reported once, by its code', () => {
  it.each<[string, PlainRequest, PlainOptions]>([
    ['TRUST_PROXY_PERMISSIVE', { ...FROM_HOME, trustsAll: true }, {}],
    ['FORWARDED_NOT_TRUSTED', FORWARDED, {}],
    [
      'FORWARDED_NOT_TRUSTED',
      { ...FROM_HOME, headers: { 'x-forwarded-for': '198.51.100.1, 192.0.2.1' } },
      {},
    ],
    ['ADDRESS_UNKNOWN', {}, {}],
    ['ADDRESS_UNKNOWN', { headers: FORWARDED.headers }, {}],
    ['ADDRESS_UNKNOWN', { ...FROM_HOME, address: 'unknown' }, {}],
    ['ADDRESS_UNKNOWN', { ...FROM_HOME, address: '' }, { allow: ['192.0.2.9'] }],
    ['FORWARDED_IGNORED', { ...FROM_HOME, headers: { forwarded: 'for=198.51.100.1' } }, {}],
    ['KEY_RAW_IPV6', FROM_IPV6, { key: (req) => req.address! }],
    ['KEY_RAW_IPV6', FROM_IPV6, { key: async (req) => `login:${req.address}` }],
    ['KEY_RAW_IPV6', FROM_IPV6, { key: (req) => joinKey('login', req.address!) }],
    ['USER_MISSING', FROM_HOME, { key: byUser(() => undefined) }],
    ['API_KEY_MISSING', FROM_HOME, { key: byApiKey() }],
  ])('%s', async (code, req, options) => {
    const guard = guardOf({ limiter, ...options })
    for (let i = 0; i < 3; i++) await pass([guard], req)
    expect(warnings.map((warning) => warning.code)).toEqual([code])
  })

  it('COUNTED_TWICE', async () => {
    const guard = guardOf({ limiter })
    for (let i = 0; i < 3; i++) await pass([guard, guard])
    expect(warnings.map((warning) => warning.code)).toEqual(['COUNTED_TWICE'])
  })

  it('NAME_TWICE, for two limiters of one name in one store', async () => {
    const store = memoryStore()
    const inStore = () => listened({ name: 'api', store })
    const guards = [guardOf({ limiter: inStore() }), guardOf({ limiter: inStore(), key: () => 'everybody' })]
    for (let i = 0; i < 3; i++) await pass(guards)
    expect(warnings.map((warning) => warning.code)).toEqual(['NAME_TWICE'])
    await store.close()
  })

  it('TRUST_PROXY_PERMISSIVE, for a list of allowed addresses with any key', async () => {
    const guard = guardOf({ limiter, key: () => 'everybody', allow: ['192.0.2.9'] })
    await pass([guard], { ...FROM_HOME, trustsAll: true })
    expect(warnings.map((warning) => warning.code)).toEqual(['TRUST_PROXY_PERMISSIVE'])
  })

  it('FORWARDED_NOT_TRUSTED, once in a process without listeners, with the names of its limiters', async () => {
    const warned = expectWarnings(['FORWARDED_NOT_TRUSTED'])
    const policies = [slidingLog({ limit: 9, window: '1m' })]
    const guards = ['orders', 'logins'].map((name) => guardOf({ limiter: createLimiter({ name, policies }) }))
    await pass(guards, FORWARDED)
    const message = /^limiters .*'orders', 'logins': requests carry X-Forwarded-For/
    expect(warned).toEqual([{ code: 'FORWARDED_NOT_TRUSTED', message: expect.stringMatching(message) }])
  })

  it('LIMITER_IN_HANDLER, once for all limiters made in handlers', () => {
    const warned = expectWarnings(['LIMITER_IN_HANDLER'])
    for (let i = 0; i < 3; i++) handleRequest()
    expect(warned).toHaveLength(1)
  })

  it('has a message that says what happens and what to do', async () => {
    await pass([guardOf({ limiter })], { ...FROM_HOME, trustsAll: true })
    expect(warnings[0]!.message).toMatch(/choose their own address.*: say how many proxies/)
  })
})

describe('nothing is reported', () => {
  it.each<[string, PlainRequest, PlainOptions]>([
    ['if the proxy is trusted', { ...FORWARDED, address: '198.51.100.1' }, {}],
    ['if a trusted proxy sends both headers', { ...FORWARDED_TWICE, address: '192.0.2.9' }, {}],
    [
      'if the header names the connection first',
      { ...FROM_HOME, headers: { 'x-forwarded-for': '192.0.2.1:443, 198.51.100.1' } },
      {},
    ],
    [
      'if Forwarded does',
      { ...FROM_HOME, headers: { forwarded: 'by=198.51.100.1;for="192.0.2.1:443"' } },
      {},
    ],
    ['of an address of the application, without one of a connection', { address: '192.0.2.1' }, {}],
    ['for a raw IPv4 address', FROM_HOME, { key: (req) => req.address! }],
    ['for IPv4 mapped to IPv6', { address: '::ffff:192.0.2.1' }, { key: (req) => req.address! }],
    ['for an IPv6 address that byIp masks', { address: '2001:db8::' }, {}],
    ['for byIp with the whole address', FROM_IPV6, { key: byIp({ ipv6Prefix: 128 }) }],
    [
      'for byIp as a part of a key',
      FROM_IPV6,
      { key: async (req, source) => joinKey(await byIp()(req, source), 'a') },
    ],
    ['for a key that looks like an address', FROM_IPV6, { key: () => joinKey('a', '', 'b', 'c', 'd') }],
    ['if no header was forwarded', { ...FROM_HOME }, {}],
    ['if the key is not an address', { ...FORWARDED, trustsAll: true }, { key: () => 'everybody' }],
  ])('%s', async (_, req, options) => {
    await pass([guardOf({ limiter, ...options })], req)
    expect(warnings).toEqual([])
  })

  it('when one limiter counts a request under two keys', async () => {
    await pass([guardOf({ limiter }), guardOf({ limiter, key: () => 'everybody' })])
    expect(warnings).toEqual([])
  })

  it('when two limiters of one name in two stores count a request', async () => {
    await pass([guardOf({ limiter }), guardOf({ limiter: listened({ name: 'api', store: memoryStore() }) })])
    expect(warnings).toEqual([])
  })

  it('when two limiters of two names in one store count a request', async () => {
    const store = memoryStore()
    await pass(['a', 'b'].map((name) => guardOf({ limiter: listened({ name, store }) })))
    expect(warnings).toEqual([])
  })

  it('when two limiters count a request under one key', async () => {
    await pass([guardOf({ limiter }), guardOf({ limiter: listened() })])
    expect(warnings).toEqual([])
  })

  it('when one limiter counts two requests', async () => {
    const guard = guardOf({ limiter })
    await pass([guard])
    await pass([guard])
    expect(warnings).toEqual([])
  })
})

describe('decisionAbout', () => {
  const req = { ...FROM_HOME }

  it('is undefined for an uncounted request', () => {
    expect(decisionAbout({})).toBeUndefined()
  })

  it('is the latest decision, or that of the limiter with the given name', async () => {
    for (const name of ['first', 'second'])
      await guardOf({ limit: 9, window: '1m', name })(req, new PlainResponse())
    expect(decisionAbout(req)?.limiter).toBe('second')
    expect(decisionAbout(req, 'first')?.limiter).toBe('first')
    expect(decisionAbout(req, 'third')).toBeUndefined()
  })
})

function listened(options: Partial<LimiterOptions> = {}): Limiter {
  const limiter = createLimiter({ ...options, policies: [slidingLog({ limit: 99, window: '1m' })] })
  limiter.on('warning', (warning) => void warnings.push(warning))
  return limiter
}

/** Named as the frame that the platform recognises. */
function handleRequest(): void {
  guardOf({ limit: 1, window: '1m' })
}
