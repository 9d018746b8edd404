/*
 * One caller must have one name, however its address is written; otherwise it has one allowance per spelling. Two callers
 * must not share a name; otherwise one of them consumes the other's allowance.
 */

/** The smallest network that a provider gives to a customer. All addresses in it count as one caller. */
export const IPV6_PREFIX = 64

/**
 * The canonical name of the caller at an address: the IPv4 address, or the IPv6 network of `ipv6Prefix` bits (32 to 128;
 * default 64) that contains it, such as `2001:db8::/64`. An IPv6 address that stands for an IPv4 caller is named by the
 * IPv4 address, except in 64:ff9b:1::/48 (local NAT64), where the whole address is the name. `text` is as a socket or a
 * proxy header gives it: ports, brackets and zones are dropped. undefined if it is not an address.
 */
export function clientAddress(text: string | undefined, ipv6Prefix = IPV6_PREFIX): string | undefined {
  if (text === undefined) return undefined
  if (IPV4.test(text)) return text
  // A dual-stack server sees every IPv4 caller in this form. Masked as IPv6, all of them would be in one network, ::/64.
  if (text.startsWith('::ffff:') && IPV4.test(text.slice(7))) return text.slice(7)
  const bare = withoutPort(text)
  if (IPV4.test(bare)) return bare
  const groups = ipv6Groups(bare)
  return groups && (ipv4Inside(groups) ?? networkOf(groups, isLocalNat64(groups) ? 128 : ipv6Prefix))
}

/** Four decimal numbers. `010.0.0.1` is 10.0.0.1 to some parsers and 8.0.0.1 to others, so it is not accepted. */
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`)

/**
 * The address without its port. Some proxies forward the port, which changes with each connection, so each connection
 * would count as a new caller.
 */
function withoutPort(text: string): string {
  const match = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text) ?? /^([\d.]+):\d{1,5}$/.exec(text)
  return match ? match[1]! : text
}

/**
 * Splits an address in canonical form into numbers of 16 bits: two of IPv4, eight of IPv6. undefined if the text is no
 * address. Both kinds can then be compared with CIDR blocks in one way.
 */
export function addressGroups(text: string): readonly number[] | undefined {
  if (!IPV4.test(text)) return ipv6Groups(text)
  const [a, b, c, d] = text.split('.').map(Number) as [number, number, number, number]
  return [(a << 8) | b, (c << 8) | d]
}

/**
 * The eight groups of 16 bits of an IPv6 address; undefined if the text is no IPv6 address. The text is first brought
 * into its one canonical form, in which `::` stands for as many zero groups as are missing. The zone (`%eth0`) is
 * dropped, as it names an interface of the receiver.
 */
function ipv6Groups(text: string): readonly number[] | undefined {
  const [address = '', zone] = text.split('%', 2)
  if (zone === '' || !IPV6_CHARACTERS.test(address)) return undefined
  try {
    const [head = '', tail] = rfc5952(address).split('::')
    const [before, after] = [hexGroups(head), hexGroups(tail ?? '')]
    return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
  } catch {
    return undefined
  }
}

const IPV6_CHARACTERS = /^[\da-f:.]{2,45}$/i

/**
 * The one form of an IPv6 address that RFC 5952 recommends, by the parser of URLs that every runtime has: an IPv4 tail is four
 * decimal numbers there, and no other spelling passes.
 * @throws TypeError for a text that is none.
 */
function rfc5952(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/** The numbers of hexadecimal groups with colons between, such as `2001:db8`; none of an empty text. */
function hexGroups(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => parseInt(group, 16))
}

/**
 * The IPv4 address that an IPv6 address stands for, or undefined: of a caller behind NAT64 (64:ff9b::/96), of 6to4
 * (2002::/16), or of the mapped form (::ffff:0:0/96). Counted as IPv6, all callers behind NAT64 (RFC 6052) would share
 * one /64, and every IPv4 address would own 65,536 networks by 6to4 (RFC 3056). `a` to `h` are the groups of 16 bits.
 */
function ipv4Inside(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number]
  if (a === 0x2002) return ipv4Text(b, c)
  const nat64 = a === 0x64 && b === 0xff9b && f === 0
  const mapped = a === 0 && b === 0 && f === 0xffff
  return (nat64 || mapped) && c === 0 && d === 0 && e === 0 ? ipv4Text(g, h) : undefined
}

/**
 * Whether an address is one that the operator's own translator writes for an IPv4 caller (RFC 8215). Where it puts the IPv4
 * address is its own choice (RFC 6052), so the whole address names the caller, who cannot choose another.
 */
function isLocalNat64([a, b, c]: readonly number[]): boolean {
  return a === 0x64 && b === 0xff9b && c === 1
}

/** The usual text of an IPv4 address, of its upper and its lower 16 bits. */
function ipv4Text(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/**
 * The network of `prefix` bits that contains an IPv6 address, such as `2001:db8::/64`; with 128 bits the address itself.
 * Callers are counted by network, because a provider gives each customer at least a /64, which is 2^64 addresses.
 */
function networkOf(groups: readonly number[], prefix: number): string {
  const masked = groups.map((group, i) => group & maskOf(i, prefix))
  const text = rfc5952(masked.map((group) => group.toString(16)).join(':'))
  return prefix === 128 ? text : `${text}/${prefix}`
}

/**
 * The mask of the 16-bit group number `i` (from 0) of an address, with a 1 for each bit that is among the first `prefix`
 * bits of the address: `0xffff` if all of them are, 0 if none is.
 */
export function maskOf(i: number, prefix: number): number {
  const bits = Math.min(16, Math.max(0, prefix - 16 * i))
  return 0xffff & (0xffff << (16 - bits))
}
