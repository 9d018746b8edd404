import { PolicyError } from '@sluice/core'
import { addressMatcher } from '../src/access.js'
import { clientAddress } from '../src/client-address.js'

describe('a list of addresses', () => {
  it.each<[string, string, boolean]>([
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.10', false],
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '64:ff9b::192.0.2.1', true],
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['10.1.2.3/8', '10.200.0.1', true],
    ['192.0.2.128/25', '192.0.2.127', false],
    ['192.0.2.128/25', '192.0.2.128', true],
    ['192.0.2.1/32', '192.0.2.1', true],
    ['192.0.2.1/32', '192.0.2.0', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::ffff:10.0.0.0/104', '10.9.9.9', true],
    ['::ffff:10.0.0.0/104', '11.9.9.9', false],
    ['2001:db8::1', '2001:DB8:0:0::1', true],
    ['2001:db8::1', '2001:db8::2', false],
    ['2001:db8::/32', '2001:db8:ffff::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['2001:db8::1/128', '2001:db8::1', true],
    ['::ffff:a00:0/104', '10.9.9.9', true],
    ['::ffff:0:0:0/96', '2001:db8::1', false],
    ['::ffff:0:0:0/96', '::ffff:0:10.0.0.1', true],
    ['::ffff:0:0:0/96', '10.0.0.1', false],
    ['::/0', '2001:db8::1', true],
    ['::10.0.0.1', '::a00:1', true],
    ['::10.0.0.1', '10.0.0.1', false],
    ['10.0.0.0/8', '::10.0.0.1', false],
    ['::10.0.0.0/104', '::a09:909', true],
    ['::/0', '192.0.2.1', false],
  ])('%s, asked about %s: %p', (entry, address, isListed) => {
    const matches = addressMatcher(['203.0.113.200', entry], 'allow')
    expect(matches(clientAddress(address, 128)!)).toBe(isListed)
  })

  it.each<[unknown]>([
    ['localhost'],
    [''],
    ['10.0.0.0/33'],
    ['10.0.0.0/'],
    ['10.0.0/8'],
    ['010.0.0.0/8'],
    ['10.0.0.0/8/8'],
    ['10.0.0.0-10.0.0.9'],
    ['2001:db8::/129'],
    ['::ffff:10.0.0.0/90'],
    ['64:ff9b::/96'],
    ['2002::/16'],
    [undefined],
    [7],
  ])('cannot hold %p', (entry) => {
    expect(() => addressMatcher([entry as string], 'deny')).toThrow(
      expect.objectContaining({
        constructor: PolicyError,
        code: 'INVALID_OPTION',
        message: expect.stringMatching(
          /^deny must list addresses and CIDR blocks, such as '10.0.0.0\/8', got/,
        ),
      }),
    )
  })
})
