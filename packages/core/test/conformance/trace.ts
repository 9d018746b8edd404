import { strict as assert } from 'node:assert'
import type { Rule } from './rule.js'

/** Everything let through, oldest first, less what was given back. */
export class Trace {
  readonly #rule: Rule
  readonly #calls: { readonly at: bigint; cost: bigint }[] = []

  constructor(rule: Rule) {
    this.#rule = rule
  }

  admitted(at: bigint, cost: bigint): void {
    if (cost > 0n) this.#calls.push({ at, cost })
  }

  refunded(now: bigint, cost: bigint): void {
    for (const call of this.#calls.toReversed()) {
      if (this.#rule.model.refunds === 'newest until now' && call.at > now) continue
      const given = call.cost < cost ? call.cost : cost
      call.cost -= given
      cost -= given
    }
  }

  check(): void {
    this.#calls.forEach(({ at: from }, first) => {
      let net = 0n
      for (const { at: to, cost } of this.#calls.slice(first)) {
        net += cost
        const bound = this.#rule.model.bound(this.#rule, from, to)
        assert(net <= bound, `${net} units in [${from}, ${to}], where ${bound} are the most`)
      }
    })
  }
}
