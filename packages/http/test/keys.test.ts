import { InputError, PolicyError } from '@sluice/core'
import { createHash } from 'node:crypto'
import {
  apiKeyKey,
  byApiKey,
  byIp,
  byUser,
  ipKey,
  joinKey,
  userKey,
  type KeyFunction,
  type SetupWarning,
} from '../src/index.js'
import { FROM_HOME, plain, type PlainRequest } from './plain-platform.js'

const warned: SetupWarning[] = []
const source = { ...plain, warn: (warning: SetupWarning) => void warned.push(warning) }
const keyOf = (key: KeyFunction<PlainRequest>, req: PlainRequest = FROM_HOME) => key(req, source)

beforeEach(() => void warned.splice(0))

describe('byIp', () => {
  it('is the canonical address in a namespace of its own', () => {
    expect(keyOf(byIp(), { address: '::ffff:203.0.113.7' })).toBe('ip:203.0.113.7')
  })

  it('is the /64 of an IPv6 address', () => {
    expect(keyOf(byIp(), { address: '2001:db8::1' })).toBe('ip:2001:db8::/64')
  })

  it('accepts another prefix', () => {
    expect(keyOf(byIp({ ipv6Prefix: 56 }), { address: '2001:db8::1' })).toBe('ip:2001:db8::/56')
  })

  it("is the socket's address if the framework's is not an IP", () => {
    expect(keyOf(byIp(), { address: 'unknown', socketAddress: '203.0.113.7' })).toBe('ip:203.0.113.7')
  })

  it('is one key for all callers without any address, and warns', () => {
    expect(keyOf(byIp(), {})).toBe('ip:unknown')
    expect(warned).toEqual(['ADDRESS_UNKNOWN'])
  })

  it.each([31, 129, 64.5, NaN, '64', null])('refuses a prefix of %p', (ipv6Prefix) => {
    expect(() => byIp({ ipv6Prefix: ipv6Prefix as number })).toThrow(PolicyError)
  })
})

describe('byUser', () => {
  it.each([
    ['ann', 'user:ann:order'],
    [42, 'user:42:order'],
    [42n, 'user:42:order'],
    [0, 'user:0:order'],
    ['a:b%', 'user:a%3Ab%25:order'],
  ])('names the user %p and the action', (id, key) => {
    expect(keyOf(byUser(() => id, 'order'))).toBe(key)
  })

  it('names only the user if no action is given', () => {
    expect(keyOf(byUser(() => 'ann'))).toBe('user:ann')
  })

  it('awaits a user that is looked up', async () => {
    await expect(keyOf(byUser(async () => 'ann', 'order'))).resolves.toBe('user:ann:order')
  })

  it.each([undefined, null, ''])('falls back to the address if the user is %p, and warns', (id) => {
    expect(keyOf(byUser(() => id, 'order'))).toBe('ip:192.0.2.1')
    expect(warned).toEqual(['USER_MISSING'])
  })

  it.each([[{}], [[]], [true], [NaN], [Infinity], [Symbol('id')], [() => 1]])('throws for %p', (id) => {
    expect(() => keyOf(byUser(() => id as string, 'order'))).toThrow(InputError)
  })

  it('refuses a pick that is not a function', () => {
    expect(() => byUser('id' as never, 'order')).toThrow(PolicyError)
  })

  it('refuses an action that is not text', () => {
    expect(() => byUser(() => 1, 7 as never)).toThrow(PolicyError)
  })
})

describe('byApiKey', () => {
  it('contains the SHA-256 of the API key and never the API key', () => {
    const digest = createHash('sha256').update('s3cret').digest('hex')
    expect(keyOf(byApiKey(), { headers: { 'x-api-key': 's3cret' } })).toBe(`api-key:${digest}`)
  })

  it('reads another header, in any case', () => {
    const a = keyOf(byApiKey('Authorization'), { headers: { authorization: 's3cret' } })
    expect(a).toBe(keyOf(byApiKey(), { headers: { 'x-api-key': 's3cret' } }))
  })

  it.each(['bearer', 'BEARER', 'Bearer', 'Basic', 'Token', 'ApiKey'])(
    'drops the scheme %s of Authorization',
    (scheme) => {
      const headers = { authorization: `${scheme} s3cret` }
      expect(keyOf(byApiKey('Authorization'), { headers })).toBe(apiKeyKey('s3cret'))
    },
  )

  it('is the same key for every spelling of the scheme and the space around it', () => {
    const schemes = Array.from({ length: 64 }, (_, bits) =>
      'bearer'
        .split('')
        .map((letter, i) => (bits & (1 << i) ? letter.toUpperCase() : letter))
        .join(''),
    )
    const spaces = [' ', '  ', '\t', ' \t ', '   ']
    const values = schemes.flatMap((scheme) =>
      spaces.map((space) => `${space}${scheme}${space}s3cret${space}`),
    )
    const keys = values.map((authorization) =>
      keyOf(byApiKey('authorization'), { headers: { authorization } }),
    )
    expect(values).toHaveLength(320)
    expect(new Set(keys)).toEqual(new Set([apiKeyKey('s3cret')]))
  })

  it('drops Bearer and outer space in any other header, and no other word', () => {
    const of = (value: string) => keyOf(byApiKey(), { headers: { 'x-api-key': value } })
    expect(of(' bearer s3cret ')).toBe(of('s3cret'))
    expect(of('my s3cret')).not.toBe(of('your s3cret'))
  })

  it.each(['Bearer', 'Bearer ', ' BEARER  '])('finds no API key in %j', (authorization) => {
    expect(keyOf(byApiKey('authorization'), { ...FROM_HOME, headers: { authorization } })).toBe(
      'ip:192.0.2.1',
    )
  })

  it.each([[{}], [{ 'x-api-key': '' }], [{ 'x-api-key': '  ' }]])(
    'falls back to the address with headers %j, and warns',
    (headers) => {
      expect(keyOf(byApiKey(), { ...FROM_HOME, headers })).toBe('ip:192.0.2.1')
      expect(warned).toEqual(['API_KEY_MISSING'])
    },
  )

  it.each(['', 7, null])('refuses %p as the name of a header', (header) => {
    expect(() => byApiKey(header as string)).toThrow(PolicyError)
  })
})

describe('the keys of callers, for block and reset', () => {
  it.each(['203.0.113.7', '::ffff:203.0.113.7', '2001:db8::1', '[2001:db8::1]:443'])(
    'ipKey(%j) is the key of byIp',
    (address) => {
      expect(ipKey(address)).toBe(keyOf(byIp(), { address }))
      expect(ipKey(address, { ipv6Prefix: 48 })).toBe(keyOf(byIp({ ipv6Prefix: 48 }), { address }))
    },
  )

  it.each(['', 'localhost', undefined])('ipKey throws for %p', (address) => {
    expect(() => ipKey(address as string)).toThrow(InputError)
  })

  it('ipKey refuses a prefix as byIp does', () => {
    expect(() => ipKey('::1', { ipv6Prefix: 8 })).toThrow(PolicyError)
  })

  it('userKey is the key of byUser', () => {
    expect(userKey('a:b')).toBe(keyOf(byUser(() => 'a:b')))
    expect(userKey(42, 'order')).toBe(keyOf(byUser(() => 42, 'order')))
    expect(() => userKey('')).toThrow(InputError)
  })

  it('apiKeyKey is the key of byApiKey, for every spelling of the API key', () => {
    const headers = { authorization: 'bearer s3cret' }
    expect(apiKeyKey('s3cret')).toBe(keyOf(byApiKey('authorization'), { headers }))
    expect(apiKeyKey('Bearer s3cret ')).toBe(apiKeyKey('s3cret'))
    expect(() => apiKeyKey(' ')).toThrow(InputError)
  })

  it('have the formats in docs/http.md', () => {
    const digest = createHash('sha256').update('s3cret').digest('hex')
    expect([ipKey('203.0.113.7'), ipKey('2001:db8::1'), userKey('ann'), userKey('ann', 'order')]).toEqual([
      'ip:203.0.113.7',
      'ip:2001:db8::/64',
      'user:ann',
      'user:ann:order',
    ])
    expect(apiKeyKey('s3cret')).toBe(`api-key:${digest}`)
  })
})

describe('joinKey', () => {
  it('gives a:b and c another key than a and b:c', () => {
    expect(joinKey('a:b', 'c')).not.toBe(joinKey('a', 'b:c'))
  })

  it('gives text that looks escaped another key than the text it looks like', () => {
    expect(joinKey('a%3Ab')).not.toBe(joinKey('a:b'))
  })

  it.each([[undefined], [null], [{}], [NaN]])('throws for the part %p', (part) => {
    expect(() => joinKey('tenant', part as never)).toThrow(InputError)
  })

  it('throws for no parts, which would give the key of one empty part', () => {
    expect(() => joinKey()).toThrow(InputError)
  })

  it('gives 100,000 lists of parts 100,000 keys', () => {
    const lists = Array.from({ length: 100_000 }, (_, i) => awkwardParts(i))
    expect(new Set(lists.map((parts) => joinKey(...parts))).size).toBe(lists.length)
  })
})

describe('ready keys', () => {
  it('differ for 100,000 pairs of user and action', () => {
    const candidates = Array.from({ length: 2000 }, (_, i) => awkwardParts(i).join(''))
    const texts = [...new Set(candidates)].filter((text) => text !== '').slice(0, 317)
    const keys = texts.flatMap((id) => texts.map((action) => keyOf(byUser(() => id, action))))
    expect(new Set(keys).size).toBe(317 * 317)
  })

  it('differ if a user is named like an address or an API key', () => {
    const headers = { 'x-api-key': 'ip:192.0.2.1' }
    const byKey = keyOf(byApiKey(), { headers }) as string
    const names = ['192.0.2.1', 'ip:192.0.2.1', byKey, byKey.slice('api-key:'.length)]
    const keys = [byKey, keyOf(byIp()), ...names.map((name) => keyOf(byUser(() => name)))]
    expect(new Set(keys).size).toBe(keys.length)
  })
})

const AWKWARD = [':', '%', '%3A', '%25', 'a', 'b', 'ip', 'user', 'api-key', '::', '\0', '{', '/', '3A', '']

/** A different list for each `n`: its digits, as parts of characters that keys are made of, so that joins are nearly equal. */
function awkwardParts(n: number): string[] {
  const digit = AWKWARD[n % AWKWARD.length]!
  const rest = Math.floor(n / AWKWARD.length) - 1
  return rest < 0 ? [digit] : [digit, ...awkwardParts(rest)]
}
