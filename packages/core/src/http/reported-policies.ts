import type { Policy } from '../algorithms/contract/policy.js'
import { policiesOf, type PolicyState } from '../limiter/decision.js'
import { mostRestrictiveOfEach, type RequestDecision } from './decisions.js'

/** One policy as it is reported to clients. */
export interface ReportedPolicy {
  /** The limiter's name, followed by the policy's if the limiter has several. Unique in a response. */
  readonly name: string
  readonly policy: Policy
  readonly state: PolicyState
}

/** The policies of all limiters that counted a request, each limiter once. */
export function reportedPolicies(all: readonly RequestDecision[]): readonly ReportedPolicy[] {
  const list: ReportedPolicy[] = []
  for (const decision of mostRestrictiveOfEach(all)) {
    const policies = policiesOf(decision)
    decision.policies.forEach((state, i) => {
      const name = policies.length === 1 ? decision.limiter : `${decision.limiter}-${state.name}`
      list.push({ name: uniqueName(name, list), policy: policies[i]!, state })
    })
  }
  return list
}

/** Two limiters may have the same name, for example the default; two items of a RateLimit list may not. */
function uniqueName(name: string, list: readonly ReportedPolicy[]): string {
  const isTaken = (candidate: string): boolean => list.some((reported) => reported.name === candidate)
  let candidate = name
  for (let i = 2; isTaken(candidate); i++) candidate = `${name}-${i}`
  return candidate
}
