import type { Policy } from '../algorithms/contract/policy.js'
import { WeakValues } from '../values/weak-values.js'
import { ExemptKeyspace } from './exempt-keyspace.js'
import type { KeyRecord, KnownRecords, RecordContent } from './known-records.js'
import type { PolicySet } from './policy-set.js'

/** An override as calls on its key look it up among ten thousand: what they need is in one object. */
export class OverrideInForce {
  readonly #until: number
  readonly #isExempt: boolean
  #notedAt = -Infinity
  #of: PolicySet | undefined
  #made: PolicySet | undefined

  constructor(
    readonly record: KeyRecord,
    readonly known: KnownRecords,
  ) {
    this.#until = record.until
    this.#isExempt = record.content.exempt === true
  }

  /**
   * The set by which a call is decided: what the override makes of its set, of which the latest is kept, or the same after its end, and
   * where a block with a record beats an exemption.
   */
  setFor(set: PolicySet): PolicySet {
    const now = this.known.now()
    if (this.#until <= now || (this.#isExempt && this.#isBlocked(now))) return set
    if (now - this.#notedAt >= NOTED_US) {
      this.#notedAt = now
      this.known.note(this.record.id)
    }
    if (this.#of !== set) [this.#of, this.#made] = [set, overridden(set, this.record.content)]
    return this.#made!
  }

  #isBlocked(now: number): boolean {
    const block = this.known.get({ ...this.record, kind: 'block' })
    return block !== undefined && block.until > now
  }
}

/** Sets that overrides have made of a set, by their numbers. Each is held by the records that have made it. */
const MADE = new WeakMap<PolicySet, WeakValues<PolicySet>>()

/** Returns what an override makes of the set of a call: the same set where it is of other shapes, or the numbers would not work. */
function overridden(set: PolicySet, content: RecordContent): PolicySet {
  const made = MADE.get(set) ?? new WeakValues<PolicySet>()
  MADE.set(set, made)
  if (content.exempt) {
    const keyspace = new ExemptKeyspace(set.keyspace, set.sets.store)
    const rest = { policies: [], given: [], keyspace, rule: 'override', exempt: true } as const
    return made.get('exempt', () => ({ ...set, ...rest }))
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
 * The policies that an override makes of those of a set; the same list where it is of other shapes.
 * @throws {PolicyError} for numbers that the algorithms cannot count exactly.
 */
export function overriddenPolicies(
  { given, shapes: own }: Pick<PolicySet, 'given' | 'shapes'>,
  { factor, limits, shapes }: Pick<RecordContent, 'factor' | 'limits' | 'shapes'>,
): readonly Policy[] {
  if (factor !== undefined) {
    const part = (units: number): number => Math.max(1, Math.floor(units * factor))
    return given.map((policy) => {
      const { limit, capacity } = policy
      return limit === 0 ? policy : policy.with({ limit: part(limit), capacity: part(capacity) })
    })
  }
  if (shapes !== own || !limits) return given
  return given.map((policy, i) => {
    const numbers = limits[i]
    if (typeof numbers !== 'number')
      return numbers ? policy.with({ limit: numbers[0], capacity: numbers[1] }) : policy
    const follows = policy.isCapacityLimit && numbers > 0
    return policy.with({ limit: numbers, ...(follows && { capacity: numbers }) })
  })
}

/** A record says to the minute when it last decided a call. */
const NOTED_US = 60_000_000
