import { checkContract } from '../values/contract.js'
import { expectedButGot, PolicyError } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import type { Answer, Correction, Keyspace, Report, Store } from '../stores/store.js'
import type { ReservationSettings } from '../stores/reservations.js'
import { maxShapes } from '../stores/shapes.js'
import { storedKey } from '../values/key.js'
import { Tree } from '../values/tree.js'
import { heldWeakly, type WeaklyHeld, WeakValues } from '../values/weak-values.js'
import type { Nearing } from './nearing.js'
import { SuspendedKeyspace } from './suspended-keyspace.js'

/** A checked list of policies of a limiter, and its state in the store: where decisions are made, and settled. */
export interface PolicySet {
  readonly limiter: string
  readonly policies: readonly Policy[]
  /** The policies as they were given, where `policies` keep a part of their capacity back. */
  readonly given: readonly Policy[]
  /** Equal for lists that share their state. */
  readonly shapes: string
  /** false in shadow mode. */
  readonly enforce: boolean
  /** The state that decides, unless an answer names another. */
  readonly keyspace: Keyspace
  readonly sets: PolicySets
  readonly nearing?: Nearing | undefined
  /** Called with each answer to a booking. */
  readonly booked?: (answer: Answer) => void
  /** Whose the list is: the limiter's own, that of a call, or the one that an override has made. */
  readonly rule: 'default' | 'plan' | 'override'
  /** Set on that of an exempt key, which has no policies and asks no store. */
  readonly exempt?: true
}

/** What a limiter has its keyspaces do beside counting. */
interface SetTerms {
  readonly penalty: Penalty | undefined
  readonly reservations: ReservationSettings | undefined
}
/** The part that all sets of a limiter have in common. */
type OfLimiter = Pick<PolicySet, 'limiter' | 'enforce' | 'nearing'>

/** Policy sets by list, so that each list is checked once. */
export class PolicySets {
  readonly #byList = new WeakMap<readonly Policy[], PolicySet>()
  /** The same by the policies of the lists, as a call may bring a list that was made anew of known policies. What a set of a store elsewhere keeps, such as leases, goes with its list. */
  readonly #byPolicies = new Tree<Policy, WeaklyHeld<PolicySet>>(true)
  /** A set for each list of shapes that is known: first those that were declared, then those of calls. */
  readonly #byShapes = new Map<string, PolicySet>()
  /** Of the sets of tiers and of calls' lists one of each numbers, while it is held elsewhere. */
  readonly #plans = new WeakValues<PolicySet>()
  #declaredShapes = 0
  #tiers: readonly PolicySet[] = []
  #mostShapes = Infinity
  readonly #penalty: Penalty | undefined
  readonly #reservations: ReservationSettings | undefined

  /**
   * Begins without lists of policies. Each list that a limiter is called under gets its state in `store`, with the penalty of `terms`
   * (blocking keys after too many denials) and its reservations. Without `common.enforce` (shadow mode) nothing is refused, so a
   * penalty has no effect. `common` also has what all lists share, such as the limiter's name; `report` receives the store's notices.
   */
  constructor(
    private readonly common: OfLimiter,
    terms: SetTerms,
    readonly store: Store,
    private readonly report: Report,
  ) {
    this.#penalty = common.enforce ? terms.penalty : undefined // shadow mode refuses nothing
    this.#reservations = terms.reservations
  }

  /**
   * Returns the set of a list of policies: the policies, checked, and their state in the store. The list is opened with its first
   * call; later calls with the same policies get the same set. A list with a limit of 0 needs no state for its calls.
   *
   * Blocks and resets of a key are made in every state that is known. Lists of the same shapes (algorithms and windows) share a
   * state, so one set for each list of shapes is kept for that, up to `#mostShapes`. Beyond it, the oldest that was not declared is
   * forgotten.
   * @throws {PolicyError} INVALID_POLICIES, DUPLICATE_NAME, or INVALID_PENALTY for a store without penalties.
   */
  get(list: readonly Policy[], rule: PolicySet['rule'] = 'plan'): PolicySet {
    let known = this.#byList.get(list)
    let branch: Tree<Policy, WeaklyHeld<PolicySet>> | undefined = this.#byPolicies
    // The list may have been made anew of policies that a set is known of.
    for (let i = 0; !known && branch && Array.isArray(list) && i < list.length; i++)
      branch = branch.next.get(list[i])
    known ??= branch?.value?.deref()
    return known ?? this.#make(list, rule)
  }

  /**
   * Checks a list of policies, opens its state in the store, and makes the set of both. A list with a limit of 0 denies every call
   * without a state (SuspendedKeyspace). The set is kept by the list itself, by its policies, and as one of the limiter's plans. One
   * set is kept for each list of shapes (algorithms and windows); beyond `#mostShapes` the oldest goes that was not declared.
   */
  #make(list: readonly Policy[], rule: PolicySet['rule']): PolicySet {
    const policies = checkedPolicies(list)
    const isSuspended = policies.some(({ limit }) => limit === 0)
    const keyspace = isSuspended
      ? new SuspendedKeyspace(policies, this.store, (otherPolicies) => this.#open(otherPolicies))
      : this.#open(policies)
    const shapes = shapesOf(policies)
    const { limiter, enforce, nearing } = this.common
    const given = { given: policies, policies: keyspace.policies, shapes }
    const set: PolicySet = { limiter, ...given, enforce, keyspace, sets: this, nearing, rule }
    this.#byList.set(list, set)
    this.#byPolicies.keep(list, this.store.local ? { deref: () => set } : heldWeakly(set))
    const numbers = policies.map(({ shape, limit, capacity }) => `${shape} ${limit}/${capacity}`)
    if (rule === 'plan') this.#plans.get(numbers.join('\n'), () => set)
    const byShapes = this.#byShapes
    if (byShapes.has(shapes)) return set
    const shapesByAge = [...byShapes.keys()]
    const oldestUndeclared = shapesByAge[this.#declaredShapes]
    if (byShapes.size >= this.#mostShapes) byShapes.delete(oldestUndeclared!)
    byShapes.set(shapes, set)
    return set
  }

  /**
   * Opens the lists of policies that stay known for good, however many others calls bring: the limiter's own, which is the first,
   * and those of `tiers`. `most` lists are known in all. Returns the set of the first.
   */
  declare(lists: readonly (readonly Policy[])[], most = maxShapes.otherwise): PolicySet {
    this.#tiers = lists.map((list, i) => this.get(list, i === 0 ? 'default' : 'plan'))
    this.#declaredShapes = this.#byShapes.size
    this.#mostShapes = most
    return this.#tiers[0]!
  }

  /**
   * Copies a block that a penalty has begun with this answer, to a call under `set`, to the states that the key has under the other
   * lists of policies that the limiter knows. Only an answer with the reason 'limit' has begun a block: the reason is another if the
   * key was blocked already. No call waits for the copies. If one fails, calls under that list are blocked only once the penalty has
   * counted enough refusals there.
   */
  spreadBlock(set: PolicySet, key: string, { reason, now, blockedUntil = now }: Answer): void {
    if (reason !== 'limit') return
    const duration = blockedUntil - now
    const change = { kind: 'block', key: storedKey(key), duration, isPenalty: true } as const
    this.correct(change, set).catch(() => {})
  }

  /**
   * Applies a change to a key, such as a block, in the state of every list of policies that is known, but not in that of `except`,
   * where it was applied before. Lists of the same shapes (algorithms and windows) share a state. Rejects if a state fails.
   */
  async correct(change: Correction, except?: PolicySet): Promise<void> {
    const sets = [...this.#byShapes.values()].filter(({ shapes }) => shapes !== except?.shapes)
    await Promise.all(sets.map(async ({ keyspace }) => keyspace.correct(change)))
  }

  /** The sets of tiers and of lists that calls have brought: one of those of equal shapes and numbers. */
  get plans(): readonly PolicySet[] {
    return this.#plans.values()
  }

  /**
   * Opens the state of the limiter in the store under a list of policies, with the limiter's penalty and reservations if it has them.
   * @throws {PolicyError} INVALID_PENALTY, INVALID_OPTION for a store that would ignore the one or the other.
   */
  #open(policies: readonly Policy[]): Keyspace {
    const penalty = this.#penalty
    const isLong = policies.some(({ calendar, windowMs }) => calendar && windowMs >= WEEK_MS)
    if (this.store.forgets && isLong) this.report({ event: 'warning', ...FORGETS })
    const reservations = this.#reservations
    const drains = policies.every(({ algorithm }) => algorithm.drains)
    if (reservations && drains) this.report({ event: 'warning', ...DRAINS })
    const keyspace = this.store.keyspace(this.common.limiter, policies, this.report, penalty, reservations)
    if (reservations && !keyspace.reservations) {
      const why =
        'the store of this limiter keeps no reservations, or has leases: leave reservations out, or leases'
      throw new PolicyError('INVALID_OPTION', why)
    }
    if (penalty && !keyspace.penalty) {
      const why = 'the store of this limiter knows no penalties: leave penalty out'
      throw new PolicyError('INVALID_PENALTY', why)
    }
    return keyspace
  }
}

const WEEK_MS = 604_800_000
const FORGETS = {
  code: 'STORE_FORGETS',
  message:
    'a window of the calendar that lasts a week or longer is in a store that a crash or a restart empties: keep budgets in Redis with an append-only ' +
    'file, or in a table of Postgres with logged: true',
}

const DRAINS = {
  code: 'RESERVATION_DRAINS',
  message:
    'no policy of this limiter gives a reservation back in full at its end, as what a gcra, a token bucket or a leaky bucket has drained is gone: ' +
    'use a window, a log, or slots',
}

/** Each policy takes some of the 200 local variables that Lua allows a script. */
const MOST_POLICIES = 10

/** Equal for lists that share their state. */
export function shapesOf(policies: readonly Policy[]): string {
  return policies.map(({ shape }) => shape).join('\n')
}

/**
 * Checks a list of policies that a limiter or a call was given: 1 to 10, made by this package or a copy that works with it.
 * Returns them, each with a name of its own.
 * @throws {PolicyError} INVALID_POLICIES, DUPLICATE_NAME, VERSION_MISMATCH.
 */
export function checkedPolicies(list: readonly Policy[]): readonly Policy[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_POLICIES) {
    const bound = `policies must be a list of 1 to ${MOST_POLICIES} policies, such as [gcra({ limit: 10, window: '1s' })]`
    throw expectedButGot(PolicyError, 'INVALID_POLICIES', bound, list)
  }
  for (const policy of list) {
    // By what it has and not instanceof: several copies of this package may meet in one process.
    if (typeof policy?.algorithm?.earliest !== 'function') {
      const bound = 'a policy must be made by gcra(), slidingLog() or the like'
      throw expectedButGot(PolicyError, 'INVALID_POLICIES', bound, policy)
    }
    checkContract('a policy', policy)
  }
  return withDistinctNames(list) // not frozen: in V8 each access to a frozen list is a function call
}

/**
 * Returns the policies of a list with distinct names, in the same order. Names that the user gave (`isNamed`) stay. To default names
 * that are equal, such as '100-per-1m', the name of the algorithm is added, and also a number from 2 on where the name is taken.
 * @throws {PolicyError} DUPLICATE_NAME for two equal names that were given.
 */
function withDistinctNames(list: readonly Policy[]): readonly Policy[] {
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
    let unique = name
    for (let i = 2; names.has(unique); i++) unique = `${name}-${i}`
    names.add(unique)
    return unique === policy.name ? policy : policy.with({ name: unique })
  })
}
