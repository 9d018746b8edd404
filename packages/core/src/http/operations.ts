import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import type { MaybePromise } from '../stores/store.js'
import { isPromise } from './after.js'
import type { Denied } from './guard.js'

/*
 * A GraphQL request may run one operation under thousands of aliases, all in one tick. The first denial of a limiter decides
 * those that follow under the same key: neither the store nor any callback is asked again. For this to mean anything where
 * the store is another process, no more than some operations of a request ask it at once; the others wait for an answer.
 */

/** A limiter's denial of one request. */
export interface Refusal {
  readonly decision: Decision
  readonly cost: number
  /** How each guard of the limiter answers it. */
  readonly answers: Map<object, MaybePromise<Denied>>
}

const MOST_AT_ONCE = 16

/** The operations of one request that one limiter counts under one key. */
export class Operations {
  #refusal: Refusal | undefined
  #asking = 0
  readonly #waiting: (() => void)[] = []
  /** The first that waits: taking each off the front of the list would be quadratic. */
  #next = 0

  /**
   * The denial that decides a further operation. A cost that never fits says nothing about lighter ones: it decides those
   * whose cost is known to be no less.
   */
  refusal(cost = 0): Refusal | undefined {
    const refusal = this.#refusal
    return refusal && (refusal.decision.reason !== 'cost' || cost >= refusal.cost) ? refusal : undefined
  }

  refuse(refusal: Refusal): void {
    this.#refusal = refusal
  }

  /** Calls `ask` now, or when fewer operations are asking. `ask` looks for a refusal itself, which may have come by then. */
  inTurn<T>(ask: () => MaybePromise<T>): MaybePromise<T> {
    if (this.#asking >= MOST_AT_ONCE) {
      const turn = new Promise<void>((resolve) => this.#waiting.push(resolve))
      return turn.then(() => this.inTurn(ask))
    }
    this.#asking++
    let answer
    try {
      answer = ask()
    } catch (error) {
      this.#done()
      throw error
    }
    if (isPromise(answer)) return answer.finally(() => this.#done())
    this.#done()
    return answer
  }

  #done(): void {
    this.#asking--
    if (this.#next === this.#waiting.length) return
    // One alone, which lets the next one go when it is answered: at once, where a denial decides it.
    const go = this.#waiting[this.#next++]!
    if (this.#next === this.#waiting.length) this.#next = this.#waiting.length = 0
    go()
  }
}

const OPERATIONS = new WeakMap<object, Map<Limiter, Map<string, Operations>>>()

/** The operations of `request` that `limiter` counts under `key`. */
export function operationsOf(request: object, limiter: Limiter, key: string): Operations {
  let byLimiter = OPERATIONS.get(request)
  if (!byLimiter) OPERATIONS.set(request, (byLimiter = new Map()))
  let byKey = byLimiter.get(limiter)
  if (!byKey) byLimiter.set(limiter, (byKey = new Map()))
  let operations = byKey.get(key)
  if (!operations) byKey.set(key, (operations = new Operations()))
  return operations
}
