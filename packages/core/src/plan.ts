import type { DecisionSource } from './decision.js'
import { expected, PolicyError } from './errors.js'
import type { Policy } from './policy.js'
import type { Keyspace, Report, Store } from './stores/store.js'

/** A checked list of policies, and the state that belongs to its shapes. */
export class Plan implements DecisionSource {
  readonly policies: readonly Policy[]

  constructor(
    readonly limiter: string,
    readonly enforce: boolean,
    readonly keyspace: Keyspace,
  ) {
    this.policies = keyspace.policies
  }
}

/** Plans by list, so that a list that is used again is checked once. */
export class Plans {
  readonly #byList = new WeakMap<readonly Policy[], Plan>()
  readonly #limiter: string
  readonly #enforce: boolean
  readonly #store: Store
  readonly #report: Report

  constructor(limiter: string, enforce: boolean, store: Store, report: Report) {
    this.#limiter = limiter
    this.#enforce = enforce
    this.#store = store
    this.#report = report
  }

  /** @throws {PolicyError} INVALID_POLICIES or DUPLICATE_NAME. */
  of(list: readonly Policy[]): Plan {
    const known = typeof list === 'object' && list !== null ? this.#byList.get(list) : undefined
    if (known) return known
    const policies = checked(list)
    const keyspace = this.#store.keyspace(this.#limiter, policies, this.#report)
    const plan = new Plan(this.#limiter, this.#enforce, keyspace)
    this.#byList.set(list, plan)
    return plan
  }
}

/** Each policy takes some of the 200 local variables that Lua allows a script. */
const MOST_POLICIES = 10

function checked(list: readonly Policy[]): readonly Policy[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_POLICIES) {
    const bound = `policies must be a list of 1 to ${MOST_POLICIES} policies`
    throw expected(PolicyError, 'INVALID_POLICIES', bound, list)
  }
  const names = new Set<string>()
  for (const policy of list) {
    // Not instanceof: the ESM and the CJS build of this package may meet in one process.
    if (typeof policy?.algorithm?.earliest !== 'function') {
      throw expected(
        PolicyError,
        'INVALID_POLICIES',
        'a policy must be made by gcra(), slidingLog() or the like',
        policy,
      )
    }
    if (names.has(policy.name)) {
      throw new PolicyError(
        'DUPLICATE_NAME',
        `two policies are named '${policy.name}': give one a name of its own`,
      )
    }
    names.add(policy.name)
  }
  return [...list] // not frozen: V8 makes a call of each look into a frozen list
}
