import ipaddr from 'ipaddr.js'

/*
 * One caller must have one name, however its address is written, or it has as many allowances as there are
 * spellings. And two callers must not share a name, or one of them uses up what belongs to the other.
 */

/** What one customer of a provider gets at least: all of its addresses are one caller. */
export const IPV6_PREFIX = 64

/**
 * The canonical name of the caller behind an address as a socket or a proxy header gives it: an IPv4 address, or
 * the IPv6 network of `ipv6Prefix` bits (32 to 128) it lies in, such as `2001:db8::/64`. Ports, brackets and zones
 * are dropped. `undefined` when the text is not an address.
 */
export function clientAddress(text: string | undefined, ipv6Prefix = IPV6_PREFIX): string | undefined {
  if (text === undefined) return undefined
  if (IPV4.test(text)) return text
  // How a dual-stack server sees every IPv4 caller. Masked as IPv6 all of them would lie in one network, ::/64.
  if (text.startsWith('::ffff:') && IPV4.test(text.slice(7))) return text.slice(7)
  const bare = withoutPort(text)
  if (IPV4.test(bare)) return bare
  const groups = ipv6Groups(bare)
  return groups && (ipv4Inside(groups) ?? networkOf(groups, ipv6Prefix))
}

/** Four decimal numbers. `010.0.0.1` is 10.0.0.1 to some parsers and 8.0.0.1 to others, so it is neither here. */
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`)

/** Some proxies forward the port, which is another one on each connection: each would be a fresh caller. */
function withoutPort(text: string): string {
  const match = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text) ?? /^([\d.]+):\d{1,5}$/.exec(text)
  return match ? match[1]! : text
}

/** The eight groups, or undefined. The zone is the receiver's own name for an interface, not the caller's. */
function ipv6Groups(text: string): readonly number[] | undefined {
  const [address = '', zone] = text.split('%', 2)
  if (zone === '') return undefined
  // ipaddr.js reads an IPv4 tail with octal and hexadecimal numbers.
  if (address.includes('.') && !IPV4.test(address.slice(address.lastIndexOf(':') + 1))) return undefined
  try {
    return ipaddr.IPv6.parse(address).parts
  } catch {
    return undefined
  }
}

/**
 * The IPv4 address that an IPv6 address stands for. Through NAT64 (RFC 6052) all IPv4 callers would share a /64.
 * With 6to4 (RFC 3056) it is the reverse: every IPv4 address owns 65,536 networks of /64 to come from.
 */
function ipv4Inside(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number]
  if (a === 0x2002) return ipv4Text(b, c)
  const nat64 = a === 0x64 && b === 0xff9b && f === 0
  const mapped = a === 0 && b === 0 && f === 0xffff
  return (nat64 || mapped) && c === 0 && d === 0 && e === 0 ? ipv4Text(g, h) : undefined
}

function ipv4Text(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** A provider gives each customer a /64 or more, so that whoever owns one can come from 2^64 addresses. */
function networkOf(groups: readonly number[], prefix: number): string {
  const masked = groups.map((group, i) => {
    const bits = Math.min(16, Math.max(0, prefix - 16 * i))
    return group & (0xffff << (16 - bits))
  })
  const text = new ipaddr.IPv6(masked).toRFC5952String()
  return prefix === 128 ? text : `${text}/${prefix}`
}
