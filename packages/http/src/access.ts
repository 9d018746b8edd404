import { PolicyError } from '@sluice/core'
import { expectedButGot } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { callerOf, type KeySource } from './caller.js'
import { addressGroups, clientAddress, maskOf } from './client-address.js'
import type { AddressList, RequestLimitOptions } from './options.js'
import { chain } from './platform.js'

/** The way of a request: it is counted, passes uncounted, or is answered 403. */
export type Access = 'count' | 'pass' | 'forbid'

type Test<Req> = (req: Req) => MaybePromise<boolean>

/**
 * Makes the first step of a guard: the function that returns 'forbid' for a request to which the option `deny` applies
 * (answered 403), 'pass' (uncounted) where `allow` or `skip` applies, and 'count' otherwise. They are asked in this order
 * up to the first that applies. undefined if none of the three options is given. A list compares the caller's address,
 * which is read from the request by `source`; the function throws (see `callerOf`) if that address is gone because the
 * caller has hung up.
 * @throws {PolicyError} INVALID_OPTION for an invalid list.
 */
export function accessChooser<Req, Res>(
  { allow, deny, skip }: RequestLimitOptions<Req, Res>,
  source: KeySource<Req>,
): ((req: Req) => MaybePromise<Access>) | undefined {
  const tests: [Test<Req>, Access][] = []
  if (deny !== undefined) tests.push([testOf('deny', deny, source), 'forbid'])
  if (allow !== undefined) tests.push([testOf('allow', allow, source), 'pass'])
  if (skip !== undefined) tests.push([(req) => skip(req, source), 'pass'])
  if (tests.length === 0) return undefined

  return (req) => ask(req, 0)

  /**
   * Asks the tests from number `i` on, and returns the outcome of the first that applies; 'count' if none does. The
   * result is a promise only if a test is async.
   */
  function ask(req: Req, i: number): MaybePromise<Access> {
    const test = tests[i]
    if (!test) return 'count'
    return chain(test[0](req), (applies) => (applies ? test[1] : ask(req, i + 1)))
  }
}

/**
 * Makes the test of the option `name`, `deny` or `allow`: the user's own function if it is one, otherwise a function that
 * returns whether the list contains the caller's address. A caller without an address is on no list.
 * @throws {PolicyError} INVALID_OPTION for anything else.
 */
function testOf<Req>(name: string, given: unknown, source: KeySource<Req>): Test<Req> {
  if (typeof given === 'function') return given as Test<Req>
  if (!Array.isArray(given)) {
    throw expectedButGot(
      PolicyError,
      'INVALID_OPTION',
      `${name} must be a list of addresses or a function`,
      given,
    )
  }
  const isListed = addressMatcher(given, name)
  return (req) => {
    const address = callerOf(req, source, wholeAddress)
    return address !== undefined && isListed(address)
  }
}

/** The canonical form of an address with all of its bits, so that it can be compared with single addresses and blocks. */
const wholeAddress = (text: string | undefined): string | undefined => clientAddress(text, 128)

/** A CIDR block: its address as groups of 16 bits (two of IPv4, eight of IPv6), and how many leading bits are compared. */
type Block = readonly [readonly number[], number]

/**
 * Makes the function that returns whether `list`, of single addresses and CIDR blocks, contains an address. That address
 * has to be in canonical form, as `clientAddress(text, 128)` returns it, because each caller has only one name there.
 * `name` is the option's, for the error message.
 * @throws {PolicyError} INVALID_OPTION for an entry that is neither an address nor a block.
 */
export function addressMatcher(list: AddressList, name: string): (address: string) => boolean {
  const single = new Set<string>()
  const blocks: Block[] = []
  for (const entry of list) {
    const text = typeof entry === 'string' ? entry : ''
    const [address, block] = [wholeAddress(text), blockOf(text)]
    if (address) single.add(address)
    else if (block) blocks.push(block)
    else {
      const what = `${name} must list addresses and CIDR blocks, such as '10.0.0.0/8'`
      throw expectedButGot(PolicyError, 'INVALID_OPTION', what, entry)
    }
  }
  return function isListed(address) {
    if (single.has(address)) return true
    if (blocks.length === 0) return false
    const groups = addressGroups(address)!
    return blocks.some((block) => isWithin(groups, block))
  }
}

/**
 * Reads a CIDR block such as 10.0.0.0/8, as its address in groups of 16 bits and the length of its prefix; undefined for
 * any other text. Bits beyond the prefix are ignored, as routers do: 10.1.2.3/8 is 10.0.0.0/8. A mapped block such as
 * ::ffff:10.0.0.0/104 is that of IPv4, whose prefix is 96 bits shorter. Blocks within 64:ff9b::/96 (NAT64) and 2002::/16
 * (6to4) count as no blocks: callers there are named by the IPv4 address inside, so such a block would match nothing.
 */
function blockOf(entry: string): Block | undefined {
  const [, text = '', digits] = /^(.+)\/(\d{1,3})$/.exec(entry) ?? []
  const address = wholeAddress(text)
  if (!address) return undefined
  const base = addressGroups(address)!
  const isIpv4 = base.length === 2
  // Not by the text alone: ::ffff:0:0:0/96 (IPv4-translated) begins like a mapped block, and stays IPv6.
  const isMapped = isIpv4 && /^::ffff:/i.test(text)
  if (isIpv4 && text.includes(':') && !isMapped) return undefined
  const bits = Number(digits) - (isMapped ? 96 : 0)
  return bits >= 0 && bits <= 16 * base.length ? [base, bits] : undefined
}

/**
 * Whether an address, as groups of 16 bits, lies in a block: both are of the same family, and the first `bits` bits of
 * the address are those of `base`, the block's own address. XOR leaves the bits in which the two differ, and the mask
 * keeps those within the prefix.
 */
function isWithin(groups: readonly number[], [base, bits]: Block): boolean {
  return (
    base.length === groups.length && base.every((group, i) => ((group ^ groups[i]!) & maskOf(i, bits)) === 0)
  )
}
