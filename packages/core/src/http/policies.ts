import { slidingLog } from '../algorithms/index.js'
import type { Duration } from '../values/duration.js'
import { expected, InputError, PolicyError } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'
import type { MaybePromise } from '../stores/store.js'
import { after } from './after.js'
import { atOdds, invalidOption } from './invalid-option.js'

/** Gives the policies of a request; undefined for the limiter's own. */
export type ChoosePolicies<Req> = (req: Req) => MaybePromise<readonly Policy[] | undefined>

export interface PoliciesOptions<Req> {
  /** With `window`, short for `policies: [slidingLog({ limit, window })]`. */
  readonly limit?: number
  readonly window?: Duration
  /**
   * All must admit a request. A function chooses them for each request, for example by the caller's tier, from lists
   * that are made once; where it gives undefined, the limiter's own hold.
   */
  readonly policies?: readonly Policy[] | ChoosePolicies<Req>
}

/**
 * The policies that a limiter is made with.
 * @throws {PolicyError} INVALID_OPTION where there are none, or two descriptions of them.
 */
export function ownPolicies<Req>({ limit, window, policies }: PoliciesOptions<Req>): readonly Policy[] {
  const list = typeof policies === 'function' ? undefined : policies
  if (list !== undefined && !Array.isArray(list)) {
    throw invalidOption('policies must be a list or a function that gives one', list)
  }
  if (list && limit !== undefined) throw atOdds('limit', 'policies')
  if (list && window !== undefined) throw atOdds('window', 'policies')
  if (limit !== undefined && window !== undefined) return [slidingLog({ limit, window })]
  if (limit !== undefined || window !== undefined || !policies) {
    throw new PolicyError('INVALID_OPTION', 'limit and window are needed, both, or policies, or a limiter')
  }
  return list ?? NONE_OF_ITS_OWN
}

/** What chooses the policies of each request. */
export function policyChooser<Req>(
  options: PoliciesOptions<Req> & { limiter?: unknown },
): ChoosePolicies<Req> {
  const { limiter, limit, policies } = options
  if (typeof policies !== 'function') return () => undefined
  return limiter || limit !== undefined ? policies : (req) => after(policies(req), given)
}

/** A limiter cannot be made without policies. No request is counted by these: `given` sees to it. */
const NONE_OF_ITS_OWN: readonly Policy[] = [slidingLog({ limit: 1, window: '1s' })]

function given(list: readonly Policy[] | undefined): readonly Policy[] {
  if (list) return list
  throw expected(InputError, 'INVALID_POLICIES', 'policies must give a list where there is no limit', list)
}
