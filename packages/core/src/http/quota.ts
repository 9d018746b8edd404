import { policiesOf, type PolicyState } from '../limiter/decision.js'
import type { Policy } from '../algorithms/contract/policy.js'
import { type Counted, tightestOfEach } from './counted.js'

/** One policy as clients are told of it. */
export interface Quota {
  /** The limiter's name, followed by the policy's where the limiter has several. Unique in its response. */
  readonly name: string
  readonly policy: Policy
  readonly state: PolicyState
}

/** The policies of all limiters that counted a request, each limiter once. */
export function quotas(all: readonly Counted[]): readonly Quota[] {
  const list: Quota[] = []
  for (const decision of tightestOfEach(all)) {
    const policies = policiesOf(decision)
    decision.policies.forEach((state, i) => {
      const name = policies.length === 1 ? decision.limiter : `${decision.limiter}-${state.name}`
      list.push({ name: unused(name, list), policy: policies[i]!, state })
    })
  }
  return list
}

/** Limiters may have one name, for example the default, but no two items of a RateLimit list. */
function unused(name: string, list: readonly Quota[]): string {
  const taken = (candidate: string): boolean => list.some((quota) => quota.name === candidate)
  let candidate = name
  for (let i = 2; taken(candidate); i++) candidate = `${name}-${i}`
  return candidate
}
