import { strict as assert } from 'node:assert'
import type { Rule } from './rule.js'

/** Everything let through, oldest first, less what was given back. Kept in the parts of a unit that the model counts. */
export class Trace {
  readonly #rule: Rule
  readonly #parts: bigint
  readonly #calls: Call[] = []
  readonly #byCharge = new Map<object, Call>()

  /** A trace without calls, under one rule. */
  constructor(rule: Rule) {
    this.#rule = rule
    this.#parts = rule.model.parts?.(rule) ?? 1n
  }

  /** Notes an admitted call. `charge` is the object by which `released` will name it. */
  admitted(at: bigint, cost: bigint, charge?: object): void {
    if (cost === 0n) return
    const call = { at, kept: cost * this.#parts }
    this.#calls.push(call)
    if (charge) this.#byCharge.set(charge, call)
  }

  /** Takes units off the newest calls, as the model says for a refund. */
  refunded(now: bigint, cost: bigint): void {
    let left = cost * this.#parts
    for (const call of this.#calls.toReversed()) {
      if (this.#rule.model.refunds === 'newest until now' && call.at > now) continue
      const given = call.kept < left ? call.kept : left
      call.kept -= given
      left -= given
    }
  }

  /** Units of one charge were given back; a fraction of one is a whole number of parts. */
  released(charge: object, units: number): void {
    this.#byCharge.get(charge)!.kept -= BigInt(Math.round(units * Number(this.#parts)))
  }

  /** Notes that a booking was cancelled, so that its units count no more, whatever that freed in the store. */
  left(charge: object): void {
    this.#byCharge.get(charge)!.kept = 0n
  }

  /**
   * Checks the promise for each span between two calls.
   * @throws where more units were kept than it allows.
   */
  check(): void {
    // A place that was left may lie behind later calls.
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
