import type { Policy } from '../algorithms/contract/policy.js'
import { chargeOf } from '../stores/giving-back.js'
import { type Answer, type ChargeCounts, type Crossing, type Keyspace, usedOf } from '../stores/store.js'
import type { Report } from '../stores/store.js'
import { wholeMs } from '../values/clock.js'
import { storedKey } from '../values/key.js'
import * as option from '../values/options.js'

/*
 * The event 'nearing', once for each key and window in the whole fleet, without state: a store makes the charges of a key one after the
 * other, and its answer says what counts after its own. So exactly one of them has less than a share before it and no less after it.
 * What it gives up: where the answer is lost, so is the event.
 */

/** Finds the shares of limits that charges have crossed. */
export class Nearing {
  /** `report` gets each crossing of one of the `shares`; `decider` is the store's kind. */
  constructor(
    private readonly shares: readonly number[],
    private readonly decider: 'memory' | 'store',
    private readonly report: Report,
  ) {}

  /** Reports what the charge of `cost` units has crossed that an answer stands for. Units out of a lease were charged with it. */
  charged(policies: readonly Policy[], key: string, cost: number, answer: Answer): void {
    const { now, parts, resetAt, from, slice = cost, degraded } = answer
    if (from === 'lease' || !chargeOf(answer, cost)) return
    const counting = degraded?.by?.policies ?? policies
    const counts = [now]
    const used = usedOf(answer, counting)
    for (let i = 0; i < used.length; i++) counts.push(used[i]!, slice, parts?.[3 * i + 2] ?? resetAt)
    const ofStore = answer.slice === undefined ? this.decider : 'lease'
    this.#find(counting, counts, { key, decidedBy: degraded ? 'local' : ofStore })
  }

  /** Charges units of a key whether they fit or not, and reports what that has crossed; `by` decides while the store does not. */
  async charge(keyspace: Keyspace, key: string, cost: number, by: Keyspace | undefined): Promise<number> {
    let counts: readonly number[] = []
    const counted: ChargeCounts = (all) => void (counts = all)
    const charging = by ?? keyspace
    const effect = await charging.correct({ kind: 'charge', key: storedKey(key), cost, counted })
    this.#find(charging.policies, counts, { key, decidedBy: by ? 'local' : this.decider })
    return effect
  }

  /** Reports each share that a charge has crossed, by its instant and three numbers per policy (ChargeCounts). */
  #find(policies: readonly Policy[], counts: readonly number[], of: Whose): void {
    for (let i = 0; i < policies.length; i++) {
      const { algorithm, limit, name: policy } = policies[i]!
      const used = counts[3 * i + 1]!
      for (const share of algorithm.hasWindows ? this.shares : []) {
        // Less what a product of floating point is too large: 0.07 of 100 is 7.
        const least = Math.ceil(share * limit * (1 - 2 ** -51))
        if (!(used >= least && used - counts[3 * i + 2]! < least)) continue
        const resetAfterMs = wholeMs(counts[3 * i + 3]! - counts[0]!)
        this.report({ event: 'nearing', ...of, policy, share, resetAfterMs })
      }
    }
  }
}

/** Whose charge it was, and by whose count. */
type Whose = Pick<Crossing, 'key' | 'decidedBy'>

/** The option `nearing`: each share once. */
export const nearing = option.custom(
  'a number above 0 and up to 1, such as 0.8, or a list of some',
  (given) => {
    const shares = [given].flat() as readonly number[]
    const areShares = shares.every((share) => Number.isFinite(share) && share > 0 && share <= 1)
    return areShares && shares.length > 0 ? [...new Set(shares)] : option.REFUSED
  },
  undefined,
  'INVALID_NEARING',
)
