import type { Policy } from '../algorithms/contract/policy.js'
import { WeakValues } from '../values/weak-values.js'
import { ExemptKeyspace } from './exempt-keyspace.js'
import type { RecordContent } from './key-record.js'
import type { PolicySet } from './policy-set.js'

/** Sets that overrides have made of a set, by their numbers. Each is held by the records that have made it. */
const MADE = new WeakMap<PolicySet, WeakValues<PolicySet>>()

/**
 * Returns what an override (`content`) makes of a set, which is a list of policies and their state: the policies with other numbers,
 * or for an exempt key no limits. Returns the same set if the override was made for other shapes (algorithms and windows), or if its
 * numbers are not valid for the policies. Sets that were made are kept while they are in use.
 */
export function overriddenSet(set: PolicySet, content: RecordContent): PolicySet {
  const made = MADE.get(set) ?? new WeakValues<PolicySet>()
  MADE.set(set, made)
  if (content.exempt) {
    const keyspace = new ExemptKeyspace(set.keyspace, set.sets.store)
    const { policies } = keyspace
    const rest = { policies, given: [], keyspace, rule: 'override', exempt: true } as const
    return made.get('exempt', () => ({ ...set, ...rest, nearing: undefined }))
  }
  try {
    const list = overriddenPolicies(set, content)
    const id = list.map(({ limit, capacity }) => `${limit}/${capacity}`).join()
    return list === set.given ? set : made.get(id, () => set.sets.get(list, 'override'))
  } catch {
    return set
  }
}

/**
 * Returns the policies that an override makes of those of a set: with all numbers multiplied by `factor`, or with the `limits`, one for
 * each policy: a limit, or a limit and a capacity; null for a policy that stays as it is. Returns the same list if the `limits` were
 * made for policies of other shapes (algorithms and windows).
 * @throws {PolicyError} for numbers that the algorithms cannot count exactly.
 */
export function overriddenPolicies(
  { given, shapes: ownShapes }: Pick<PolicySet, 'given' | 'shapes'>,
  { factor, limits, shapes }: Pick<RecordContent, 'factor' | 'limits' | 'shapes'>,
): readonly Policy[] {
  if (factor !== undefined) {
    const multiplied = (units: number): number => Math.max(1, Math.floor(units * factor))
    return given.map((policy) => {
      const { limit, capacity } = policy
      return limit === 0 ? policy : policy.with({ limit: multiplied(limit), capacity: multiplied(capacity) })
    })
  }
  if (shapes !== ownShapes || !limits) return given
  return given.map((policy, i) => {
    const numbers = limits[i] ?? null
    if (numbers === null) return policy
    const [limit, ownCapacity]: readonly [number, number?] = typeof numbers === 'number' ? [numbers] : numbers
    const capacity = ownCapacity ?? (policy.isCapacityLimit ? limit : undefined)
    return policy.with({ limit, ...(capacity && limit > 0 && { capacity }) }) // a limit of 0 has no capacity
  })
}
