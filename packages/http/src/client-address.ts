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
 * proxy header gives it (see `bareAddress`); zones are dropped. undefined if it is not an address.
 */
export function clientAddress(text = '', ipv6Prefix = IPV6_PREFIX): string | undefined {
  if (IPV4.test(text)) return text
  // A dual-stack server sees every IPv4 caller in this form. Masked as IPv6, all of them would be in one network, ::/64.
  if (text.startsWith('::ffff:') && IPV4.test(text.slice(7))) return text.slice(7)
  const [bare, groups] = addressIn(text) ?? []
  if (groups?.length !== 8) return bare
  return ipv4Inside(groups) ?? networkOf(groups, hexText(groups, 3) === LOCAL_NAT64 ? 128 : ipv6Prefix)
}

/** Four decimal numbers. `010.0.0.1` is 10.0.0.1 to some parsers and 8.0.0.1 to others, so it is not accepted. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.?\b){4}$/

/**
 * The address in the text by which a gateway names its client, otherwise as it stands: without quotes, brackets and port, and
 * taken out of an element of Forwarded, `for="[2001:db8::1]:443";proto=https`. undefined for a text that names no address, such
 * as `unknown`, `_hidden` or `unix:`.
 */
export function bareAddress(text: string): string | undefined {
  return addressIn(text)?.[0]
}

/**
 * The address in the text of a gateway, without its port, and its groups of 16 bits. A port changes with each connection, so
 * with it each connection would count as a new caller. A last number that may be a group of an IPv6 address is read as one and
 * not as a port; the network is the same. undefined if there is no address.
 */
function addressIn(text: string): readonly [string, readonly number[]] | undefined {
  const node = (FOR_OF_FORWARDED.exec(text)?.[1] ?? text).replace(QUOTED, '$1')
  for (const host of [node, node.replace(PORT, '')]) {
    const address = host.replace(BRACKETED, '$1')
    const groups = addressGroups(address)
    if (groups) return [address, groups]
  }
  return undefined
}

/** The part `for` of Forwarded, but not behind a `host`, which the caller chooses. */
const FOR_OF_FORWARDED = /^(?:(?:by|proto)=[^;]*;)*for=([^;]*)/i
const QUOTED = /^"(.*)"$/
const BRACKETED = /^\[(.*)\]$/
/** A port, in RFC 7239 also an obfuscated one. */
const PORT = /:(\d{1,5}|_.*)$/

/**
 * Splits an address into numbers of 16 bits: two of IPv4, eight of IPv6. undefined if the text is no
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
    const [head = '', tail = ''] = rfc5952(address).split('::')
    const [before, after] = [hexGroups(head), hexGroups(tail)]
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
  return (text.match(/\w+/g) ?? []).map((group) => parseInt(group, 16))
}

/**
 * The IPv4 address that an IPv6 address stands for, or undefined: of a caller behind NAT64 (64:ff9b::/96), of 6to4
 * (2002::/16), or of the mapped form (::ffff:0:0/96). Counted as IPv6, all callers behind NAT64 (RFC 6052) would share
 * one /64, and every IPv4 address would own 65,536 networks by 6to4 (RFC 3056).
 */
function ipv4Inside(groups: readonly number[]): string | undefined {
  const isInLast = ['64:ff9b:0:0:0:0', '0:0:0:0:0:ffff'].includes(hexText(groups, 6))
  const at = isInLast ? 6 : groups[0] === 0x2002 ? 1 : undefined
  const inside = at && groups.slice(at, at + 2).flatMap((group) => [group >> 8, group & 255])
  return inside && inside.join('.')
}

/**
 * Where the operator's own translator writes IPv4 callers (RFC 8215). Where it puts the IPv4 address is its own choice (RFC 6052),
 * so the whole address names the caller, who cannot choose another.
 */
const LOCAL_NAT64 = '64:ff9b:1'

/** The first `count` groups of an IPv6 address (default: all), each in hexadecimal, with colons between. */
function hexText(groups: readonly number[], count?: number): string {
  return groups
    .slice(0, count)
    .map((group) => group.toString(16))
    .join(':')
}

/**
 * The network of `prefix` bits that contains an IPv6 address, such as `2001:db8::/64`; with 128 bits the address itself.
 * Callers are counted by network, because a provider gives each customer at least a /64, which is 2^64 addresses.
 */
function networkOf(groups: readonly number[], prefix: number): string {
  const masked = groups.map((group, i) => group & maskOf(i, prefix))
  const text = rfc5952(hexText(masked))
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
