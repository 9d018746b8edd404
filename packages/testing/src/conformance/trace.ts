import { strict as assert } from 'node:assert'
import type { Rule } from './rule.js'

/**
 * All units that a key let through, each call at its instant, less what was given back, to be compared with the promise of an
 * algorithm: the most that may pass in any span. Counted in the parts of a unit that its model counts, as a release may free a
 * fraction.
 */
export class Trace {
  readonly #rule: Rule
  readonly #parts: bigint
  readonly #calls: Call[] = []
  readonly #byCharge = new Map<object, Call>()

  /**
   * A trace without calls, of a key under one policy. `#parts` is how many parts the policy's model divides a unit into: 1 in
   * most, many in models of debts, which drain by fractions of a unit.
   */
  constructor(rule: Rule) {
    this.#rule = rule
    this.#parts = rule.model.parts?.(rule) ?? 1n
  }

  /**
   * Notes that `cost` units were let through, to count at the instant `at` in microseconds. `charge` is the object by which
   * `released` or `left` will name the call, if any of it may be given back by name.
   */
  admitted(at: bigint, cost: bigint, charge?: object): void {
    if (cost === 0n) return
    const call = { at, kept: cost * this.#parts }
    this.#calls.push(call)
    if (charge) this.#byCharge.set(charge, call)
  }

  /**
   * Takes `cost` units off the calls, from the one noted last back to the first. Where the model says that a refund leaves
   * bookings alone ('newest until now'), calls whose instant lies after `now` stay as they are.
   */
  refunded(now: bigint, cost: bigint): void {
    let left = cost * this.#parts
    for (const call of this.#calls.toReversed()) {
      if (this.#rule.model.refunds === 'newest until now' && call.at > now) continue
      const given = call.kept < left ? call.kept : left
      call.kept -= given
      left -= given
    }
  }

  /**
   * Takes units off the call of a charge. `units` may be a fraction, as a debt that has drained in part gives back: it is rounded
   * to a whole number of the parts that the model counts.
   */
  released(charge: object, units: number): void {
    this.#byCharge.get(charge)!.kept -= BigInt(Math.round(units * Number(this.#parts)))
  }

  /** Notes that a booking was cancelled: its units count no more in the trace, however many of them the store has freed. */
  left(charge: object): void {
    this.#byCharge.get(charge)!.kept = 0n
  }

  /**
   * Checks the promise for each span that begins and ends with a call: the whole units that were kept in it may be no more than
   * the model's bound. Other spans hold no more calls than one of these and are longer.
   * @throws {AssertionError} with the first span that holds more.
   */
  check(): void {
    // Calls are noted as they are made: after a booking was cancelled, a later call may get an earlier instant than it had.
    const calls = this.#calls.toSorted((a, b) => Number(a.at - b.at))
    calls.forEach(({ at: from }, first) => {
      let kept = 0n
      for (const { at: to, kept: more } of calls.slice(first)) {
        kept += more
        const net = kept / this.#parts
        const bound = this.#rule.model.bound(this.#rule, from, to)
        assert(net <= bound, `${net} units in [${from}, ${to}], where ${bound} are the most`)
      }
    })
  }
}

interface Call {
  readonly at: bigint
  kept: bigint
}
