import type { MaybePromise } from '../stores/store.js'
import { expected, PolicyError } from '../values/errors.js'
import { addressMatcher } from './address-list.js'
import { chain } from './chain.js'
import { clientAddress, HungUpError } from './client-address.js'
import type { KeySource } from './keys.js'
import type { GuardOptions } from './options.js'
import { proxyWarning } from './setup-warnings.js'

/** What becomes of a request: it is counted, passes uncounted, or is answered 403. */
export type Access = 'count' | 'pass' | 'forbid'

type Test<Req> = (req: Req) => MaybePromise<boolean>

/**
 * Makes the function that asks `deny`, `allow` and `skip` about a request, in this order and only as far as the first that
 * applies; undefined if none of them is given. It throws a HungUpError if a list needs the address of a caller that is gone.
 * @throws {PolicyError} INVALID_OPTION for an invalid list.
 */
export function accessChooser<Req, Res>(
  { allow, deny, skip }: GuardOptions<Req, Res>,
  source: KeySource<Req>,
): ((req: Req) => MaybePromise<Access>) | undefined {
  const tests: [Test<Req>, Access][] = []
  if (deny !== undefined) tests.push([testOf('deny', deny, source), 'forbid'])
  if (allow !== undefined) tests.push([testOf('allow', allow, source), 'pass'])
  if (skip !== undefined) tests.push([skip, 'pass'])
  if (tests.length === 0) return undefined

  return (req) => ask(req, 0)

  function ask(req: Req, i: number): MaybePromise<Access> {
    const test = tests[i]
    if (!test) return 'count'
    return chain(test[0](req), (applies) => (applies ? test[1] : ask(req, i + 1)))
  }
}

function testOf<Req>(name: string, given: unknown, source: KeySource<Req>): Test<Req> {
  if (typeof given === 'function') return given as Test<Req>
  if (!Array.isArray(given)) {
    throw expected(PolicyError, 'INVALID_OPTION', `${name} must be a list of addresses or a function`, given)
  }
  const isListed = addressMatcher(given, name)
  return (req) => {
    // With a proxy that callers can bypass they choose an address that is allowed.
    const warning = proxyWarning(req, source)
    if (warning) source.warn(warning)
    const address = clientAddress(source.address(req), 128) ?? clientAddress(source.socketAddress(req), 128)
    if (address !== undefined) return isListed(address)
    if (source.hungUp?.(req)) throw new HungUpError('the caller hung up before its address could be read')
    source.warn('ADDRESS_UNKNOWN')
    return false
  }
}
