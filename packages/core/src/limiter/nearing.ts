import type { Policy } from '../algorithms/contract/policy.js'
import { chargeOf } from '../stores/giving-back.js'
import { type Answer, type Counted, type Keyspace, usedOf } from '../stores/store.js'
import { wholeMs } from '../values/clock.js'
import { PolicyError } from '../values/errors.js'
import { storedKey } from '../values/key.js'
import * as option from '../values/options.js'

/*
 * The event 'nearing', once for each key and window in the whole fleet, without state: a store makes the charges of a key one after the
 * other, and its answer says what counts after its own. So exactly one of them has less than a share before it and no less after it.
 * What it gives up: where the answer is lost, so is the event.
 */

/** A charge that has crossed a share of a limit. */
export interface Crossing {
  readonly key: string
  /** Name of the policy. */
  readonly policy: string
  /** The share of its limit, as the option `nearing` has it. */
  readonly share: number
  /** Milliseconds until the window of the charge ends. */
  readonly resetAfterMs: number
  /**
   * Whose count it was: that of a 'store' or of 'memory'; 'lease', the store's, in which units count that this process has taken in
   * advance; 'local', that of this process alone while the store did not decide.
   */
  readonly decidedBy: 'memory' | 'store' | 'lease' | 'local'
}

/** Finds the shares of limits that charges have crossed. */
export class Nearing {
  /** `report` gets each crossing of one of the `shares`; `decider` is the store's kind. */
  constructor(
    private readonly shares: readonly number[],
    private readonly decider: 'memory' | 'store',
    private readonly report: (crossing: Crossing) => void,
  ) {}

  /** Reports what the charge of `cost` units has crossed that an answer stands for. Units out of a lease were charged with it. */
  charged(policies: readonly Policy[], key: string, cost: number, answer: Answer): void {
    const { now, parts, resetAt, slice, degraded } = answer
    if (cost === 0 || answer.from === 'lease' || !chargeOf(answer, cost)) return
    const counting = degraded?.by?.policies ?? policies
    const used = usedOf(answer, counting)
    const decidedBy = degraded ? 'local' : slice === undefined ? this.decider : 'lease'
    for (let i = 0; i < counting.length; i++) {
      const policy = counting[i]!
      for (const share of this.#crossed(policy, used[i]!, slice ?? cost)) {
        const resetAfterMs = wholeMs((parts?.[3 * i + 2] ?? resetAt) - now)
        this.report({ key, policy: policy.name, share, resetAfterMs, decidedBy })
      }
    }
  }

  /** Charges units of a key whether they fit or not, and reports what that has crossed; `isLocal` while the store does not decide. */
  async charge(keyspace: Keyspace, key: string, cost: number, isLocal = false): Promise<number> {
    const charges: Parameters<Counted>[] = []
    const counted: Counted = (...counts) => void charges.push(counts)
    const units = await keyspace.correct({ kind: 'charge', key: storedKey(key), cost, counted })
    const decidedBy = isLocal ? 'local' : this.decider
    for (const [now, counts] of charges)
      for (const [i, policy] of keyspace.policies.entries()) {
        const [used, charged, resetAt] = counts.slice(3 * i) as [number, number, number]
        for (const share of this.#crossed(policy, used, charged))
          this.report({ key, policy: policy.name, share, resetAfterMs: wholeMs(resetAt - now), decidedBy })
      }
    return units
  }

  /** The shares that `units` have crossed, after which `used` units count. */
  #crossed({ algorithm, limit }: Policy, used: number, units: number): readonly number[] {
    if (!algorithm.hasWindows) return []
    return this.shares.filter((share) => {
      const least = Math.ceil(share * limit * EXACTLY)
      return used >= least && used - units < least
    })
  }
}

/** Takes away what a product of floating point is too large: 0.07 of 100 is 7. */
const EXACTLY = 1 - 2 ** -51

/** The option `nearing`: shares, the smallest first. */
export const nearing = option.custom(
  'a number above 0 and up to 1, such as 0.8, or a list of up to 10',
  sharesOf,
  undefined,
  'INVALID_NEARING',
)

function sharesOf(given: unknown): readonly number[] | typeof option.REFUSED {
  const shares: unknown[] = [given].flat()
  const areShares = shares.every((share) => typeof share === 'number' && share > 0 && share <= 1)
  if (!areShares || shares.length === 0 || shares.length > 10) return option.REFUSED
  return [...new Set(shares as number[])].toSorted((one, other) => one - other)
}

/** @throws {PolicyError} INVALID_NEARING for a list none of whose policies has windows to count once in. */
export function checkWindows(policies: readonly Policy[]): void {
  if (policies.some(({ algorithm }) => algorithm.hasWindows)) return
  const why = `'${policies[0]!.algorithm.name}' has no window in which a share is crossed once: use a calendar or fixed window`
  throw new PolicyError('INVALID_NEARING', `nearing: ${why}`)
}
