import { clientAddress } from '../src/index.js'

describe('clientAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7', 'keeps an IPv4 address'],
    ['0.0.0.0', '0.0.0.0', 'keeps the least IPv4 address'],
    ['255.255.255.255', '255.255.255.255', 'keeps the greatest IPv4 address'],
    ['203.0.113.7:50123', '203.0.113.7', 'drops the port of an IPv4 address'],
    ['::ffff:203.0.113.7', '203.0.113.7', 'unwraps a mapped IPv4 address'],
    ['::FFFF:203.0.113.7', '203.0.113.7', 'unwraps it in capitals'],
    ['::ffff:cb00:7107', '203.0.113.7', 'unwraps it in hexadecimal'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7', 'unwraps it written out'],
    ['[::ffff:203.0.113.7]:443', '203.0.113.7', 'unwraps it in brackets with a port'],
    ['::ffff:203.0.113.7%eth0', '203.0.113.7', 'unwraps it with a zone'],
    ['::ffff:203.0.113.7:50123', '203.0.113.7', 'unwraps it with a bare port'],
    ['"203.0.113.7:50123"', '203.0.113.7', 'drops quotes'],
    ['"[2001:db8::1]:_p0rt"', '2001:db8::/64', 'drops an obfuscated port'],
    ['for=203.0.113.7', '203.0.113.7', 'reads Forwarded'],
    ['proto=https;FOR="[2001:db8::1]:443";by=_x', '2001:db8::/64', 'reads an element of it'],
    ['2001:db8:1:2:3:4:5:6:443', '2001:db8:1:2::/64', 'drops a bare port behind eight groups'],
    ['2001:db8::1:50123', '2001:db8::/64', 'drops a bare port that can be no group'],
    ['2001:db8::1:443', '2001:db8::/64', 'takes one that can be a group for one'],
    ['64:ff9b::203.0.113.7', '203.0.113.7', 'unwraps NAT64'],
    ['64:ff9b::cb00:7107', '203.0.113.7', 'unwraps NAT64 in hexadecimal'],
    ['2002:cb00:7107::1', '203.0.113.7', 'unwraps 6to4'],
    ['2002:cb00:7107:ffff:1:2:3:4', '203.0.113.7', 'unwraps 6to4 whatever its subnet'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', 'masks an IPv6 address to its /64'],
    ['2001:0DB8:0001:0002:0000:0000:0000:0000', '2001:db8:1:2::/64', 'writes it in one form'],
    ['2001:db8::1', '2001:db8::/64', 'shortens the longest run of zeros'],
    ['[2001:db8::1]', '2001:db8::/64', 'drops brackets'],
    ['[2001:db8::1]:8080', '2001:db8::/64', 'drops brackets and port'],
    ['fe80::1%eth0', 'fe80::/64', 'drops the zone'],
    ['fe80::1%br-lan.100', 'fe80::/64', 'drops a zone of any name'],
    ['[fe80::1%25eth0]:80', 'fe80::/64', 'drops zone, brackets and port'],
    ['::1', '::/64', 'masks the loopback address as any other'],
    ['64:ff9b:1::203.0.113.7', '64:ff9b:1::cb00:7107', 'counts an address of a local NAT64 prefix whole'],
    [
      '64:ff9b:1:ffff::1',
      '64:ff9b:1:ffff::1',
      'counts it whole wherever the translator puts the IPv4 address',
    ],
    ['64:ff9b:2::1', '64:ff9b:2::/64', 'masks the neighbour of local NAT64 as any other'],
    ['::10.0.0.1', '::/64', 'keeps a compatible IPv4 address as IPv6'],
    ['::a00:1', '::/64', 'keeps it as IPv6 in hexadecimal'],
    ['::', '::/64', 'masks the unspecified address as any other'],
    ['64:ff9b:0:0:1::cb00:7107', '64:ff9b::/64', 'does not take a neighbour of NAT64 for it'],
    ['64:ff9b::1:cb00:7107', '64:ff9b::/64', 'does not take an address near NAT64 for it'],
    ['0:0:0:0:ffff:0:cb00:7107', '::/64', 'does not take a translated address for a mapped one'],
  ])('%s is %s: %s', (text, expected) => {
    expect(clientAddress(text)).toBe(expected)
  })

  it.each([
    ['::10.0.0.1', '::a00:1'],
    ['::a00:1', '::a00:1'],
    ['2001:db8::10.0.0.1', '2001:db8::a00:1'],
    ['64:ff9b:1::10.0.0.1', '64:ff9b:1::a00:1'],
  ])('whole, %s is %s', (text, expected) => {
    expect(clientAddress(text, 128)).toBe(expected)
  })

  it.each([
    [undefined],
    [''],
    ['unknown'],
    ['localhost'],
    ['203.0.113'],
    ['203.0.113.7.1'],
    ['203.0.113.256'],
    ['203.0.113.07'],
    ['0313.0.113.7'],
    ['0xcb.0.113.7'],
    ['3405803783'],
    ['203.0.113.7:'],
    ['203.0.113.7:port'],
    [' 203.0.113.7'],
    ['203.0.113.7\n'],
    ['203.0.113.7, 203.0.113.8'],
    ['٢٠٣.0.113.7'],
    ['::ffff:203.0.113.07'],
    ['::ffff:0313.0.113.7'],
    ['::ffff:203.0.113.256'],
    ['64:ff9b::0xcb.0.113.7'],
    ['2001:db8'],
    ['2001:db8::1::2'],
    ['2001:db8:1:2:3:4:5:6:7:8'],
    ['2001:db8:1:2:3:4:5:6:abc'],
    ['203.0.113.7:80:80'],
    ['"203.0.113.7'],
    ['unix:'],
    ['for='],
    ['for=unknown'],
    ['for="_gazonk"'],
    ['203.0.113.7;proto=https'],
    ['2001:db8::12345'],
    ['2001:db8::g'],
    ['2001:db8::1/64'],
    ['[2001:db8::1'],
    ['2001:db8::1]'],
    ['[2001:db8::1]443'],
    ['[2001:db8::1]:'],
    ['[]'],
    ['[203.0.113.7'],
    ['fe80::1%'],
    ['%eth0'],
    ['_gazonk'],
  ])('returns undefined for %j, which is not an address', (text) => {
    expect(clientAddress(text)).toBeUndefined()
  })

  it.each(['1', 'a:', '[', '%', ':1', 'for=', ';for=', '"'])('does not parse a megabyte of %j', (text) => {
    expect(clientAddress(text.repeat(1_000_000))).toBeUndefined()
  })

  it.each([
    [32, '2001:db8::/32'],
    [48, '2001:db8:1::/48'],
    [56, '2001:db8:1:ab00::/56'],
    [60, '2001:db8:1:abc0::/60'],
    [64, '2001:db8:1:abcd::/64'],
    [65, '2001:db8:1:abcd:8000::/65'],
    [127, '2001:db8:1:abcd:ffff:ffff:ffff:fffe/127'],
    [128, '2001:db8:1:abcd:ffff:ffff:ffff:ffff'],
  ])('masks to a prefix of %i bits', (prefix, expected) => {
    expect(clientAddress('2001:db8:1:abcd:ffff:ffff:ffff:ffff', prefix)).toBe(expected)
  })

  it('gives each mapped caller a name of its own (CVE-2026-30827)', () => {
    const names = ['::ffff:198.51.100.1', '::ffff:198.51.100.2', '::ffff:c633:6403'].map((text) =>
      clientAddress(text),
    )
    expect(new Set(names).size).toBe(3)
  })

  it('gives a customer one name for all of its 2^64 addresses', () => {
    const names = Array.from({ length: 1000 }, (_, i) =>
      clientAddress(`2001:db8:0:7:${i.toString(16)}::${i}`),
    )
    expect(new Set(names).size).toBe(1)
  })
})
