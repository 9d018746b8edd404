import { checkContract } from '../values/contract.js'
import { expected, PolicyError } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import type { Keyspace, Report, Store } from '../stores/store.js'
import { SuspendedKeyspace } from './suspended-keyspace.js'

/** A checked list of policies of a limiter, and its state in the store: where decisions are made, and settled. */
export interface PolicySet {
  readonly limiter: string
  readonly policies: readonly Policy[]
  /** false in shadow mode. */
  readonly enforce: boolean
  /** The state that decides, unless an answer names another. */
  readonly keyspace: Keyspace
}

/** Policy sets by list, so that each list is checked once. */
export class PolicySets {
  readonly #byList = new WeakMap<readonly Policy[], PolicySet>()
  readonly #penalty: Penalty | undefined

  constructor(
    private readonly limiter: string,
    private readonly enforce: boolean,
    penalty: Penalty | undefined,
    private readonly store: Store,
    private readonly report: Report,
  ) {
    this.#penalty = enforce ? penalty : undefined // shadow mode refuses nothing
  }

  /** @throws {PolicyError} INVALID_POLICIES, DUPLICATE_NAME, or INVALID_PENALTY for a store without penalties. */
  get(list: readonly Policy[]): PolicySet {
    const known = typeof list === 'object' && list !== null ? this.#byList.get(list) : undefined
    if (known) return known
    const policies = checked(list)
    const isSuspended = policies.some(({ limit }) => limit === 0)
    const keyspace = isSuspended
      ? new SuspendedKeyspace(policies, this.store, (open) => this.#open(open))
      : this.#open(policies)
    const set = { limiter: this.limiter, policies: keyspace.policies, enforce: this.enforce, keyspace }
    this.#byList.set(list, set)
    return set
  }

  #open(policies: readonly Policy[]): Keyspace {
    const penalty = this.#penalty
    const keyspace = this.store.keyspace(this.limiter, policies, this.report, penalty)
    if (penalty && !keyspace.penalty) {
      const why = 'the store of this limiter knows no penalties: leave penalty out'
      throw new PolicyError('INVALID_PENALTY', why)
    }
    return keyspace
  }
}

/** Each policy takes some of the 200 local variables that Lua allows a script. */
const MOST_POLICIES = 10

function checked(list: readonly Policy[]): readonly Policy[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_POLICIES) {
    const bound = `policies must be a list of 1 to ${MOST_POLICIES} policies`
    throw expected(PolicyError, 'INVALID_POLICIES', bound, list)
  }
  for (const policy of list) {
    // Not instanceof: several copies of this package may meet in one process.
    if (typeof policy?.algorithm?.earliest !== 'function') {
      const bound = 'a policy must be made by gcra(), slidingLog() or the like'
      throw expected(PolicyError, 'INVALID_POLICIES', bound, policy)
    }
    checkContract('a policy', policy)
  }
  return withOwnNames(list) // not frozen: in V8 each access to a frozen list is a function call
}

/** Makes equal default names distinct by adding the algorithm, and a number if that is equal too. */
function withOwnNames(list: readonly Policy[]): readonly Policy[] {
  const names = new Set<string>()
  for (const { name, isNamed } of list) {
    if (isNamed && names.has(name)) {
      throw new PolicyError('DUPLICATE_NAME', `two policies are named '${name}': give one a name of its own`)
    }
    if (isNamed) names.add(name)
  }
  const isShared = ({ name }: Policy): boolean => list.filter((other) => other.name === name).length > 1
  return list.map((policy) => {
    if (policy.isNamed) return policy
    const name = isShared(policy) ? `${policy.name}-${policy.algorithm.name}` : policy.name
    let own = name
    for (let i = 2; names.has(own); i++) own = `${name}-${i}`
    names.add(own)
    return own === policy.name ? policy : policy.with({ name: own })
  })
}
