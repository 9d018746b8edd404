import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer, ChargeCounts, Crossing, Keyspace, Report } from '../stores/store.js'
import { isDenied, usedOf } from '../stores/store.js'
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
  /**
   * Watches whether charges use up one of the `shares` of a limit, such as 0.8. `report` gets a notice of each charge that does.
   * `decider` is what the notice names as the place of the decision: this process's memory, or a store elsewhere.
   */
  constructor(
    private readonly shares: readonly number[],
    private readonly decider: 'memory' | 'store',
    private readonly report: Report,
  ) {}

  /**
   * Reports the shares that a call of `cost` units has crossed, as its answer says; none if it charged nothing. Units out of a lease
   * charge nothing: they were all charged with the answer that filled it (`slice`).
   */
  charged(policies: readonly Policy[], key: string, cost: number, answer: Answer): void {
    const { now, parts, resetAt, from, slice, degraded } = answer
    const isUncounted = degraded && !degraded.by
    if (from === 'lease' || isDenied(answer) || isUncounted) return
    const ofStore = slice === undefined ? this.decider : 'lease'
    const charge: ChargeMade = { key, decidedBy: degraded ? 'local' : ofStore }
    const counting = degraded?.by?.policies ?? policies
    for (let i = 0; i < counting.length; i++) {
      const endsAt = parts ? parts[3 * i + 2]! : resetAt // three numbers a policy, the last is its end
      const used = usedOf(answer, counting[i]!, i)
      this.#reportCrossed(counting[i]!, used, slice ?? cost, endsAt - now, charge)
    }
  }

  /** Charges units of a key whether they fit or not, reports the shares that they have crossed, and returns the units charged. */
  async charge(keyspace: Keyspace, key: string, cost: number, by?: 'local'): Promise<number> {
    const charge = { key, decidedBy: by ?? this.decider }
    let counts: readonly number[] = []
    const counted: ChargeCounts = (all) => void (counts = all)
    const unitsCharged = await keyspace.correct({ kind: 'charge', key: storedKey(key), cost, counted })
    const [now = 0, ...threeEachPolicy] = counts
    keyspace.policies.forEach((policy, i) => {
      const [used = 0, units = 0, endsAt = 0] = threeEachPolicy.slice(3 * i)
      this.#reportCrossed(policy, used, units, endsAt - now, charge)
    })
    return unitsCharged
  }

  /**
   * Reports each share of a policy's limit that a charge of `units` has crossed: with them `used` units count, for `timeLeft`
   * microseconds more.
   */
  #reportCrossed(policy: Policy, used: number, units: number, timeLeft: number, charge: ChargeMade): void {
    const usedBefore = used - units
    for (const share of policy.algorithm.hasWindows ? this.shares : []) {
      // A product of floating point may be too large by a little: 0.07 of 100 is to be 7.
      const unitsOfShare = Math.ceil(share * policy.limit * (1 - 2 ** -51))
      const isCrossed = usedBefore < unitsOfShare && used >= unitsOfShare
      if (!isCrossed) continue
      const resetAfterMs = wholeMs(timeLeft)
      this.report({ event: 'nearing', ...charge, policy: policy.name, share, resetAfterMs })
    }
  }
}

/** Whose charge it was, and by whose count. */
type ChargeMade = Pick<Crossing, 'key' | 'decidedBy'>

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
