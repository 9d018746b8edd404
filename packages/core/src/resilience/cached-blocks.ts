import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer } from '../stores/store.js'
import type { BegunCall, DenialCache, Denials } from './denial-cache.js'

/**
 * The blocks among the cached denials, for limiters with a penalty. Their store has to count every call that it refuses
 * because of a limit, so no other denial is answered from the cache, also not one of a limiter without a penalty.
 */
export class CachedBlocks implements Denials {
  readonly #cache: DenialCache

  constructor(cache: DenialCache) {
    this.#cache = cache
  }

  get(policies: readonly Policy[], key: string, cost: number): Answer | undefined {
    const denial = this.#cache.get(policies, key, cost)
    return denial?.reason === 'blocked' ? denial : undefined
  }

  newest(policies: readonly Policy[], key: string): Answer | undefined {
    return this.#cache.newest(policies, key)
  }

  begin(): BegunCall {
    return this.#cache.begin()
  }

  record(policies: readonly Policy[], key: string, cost: number, call: BegunCall, answer: Answer): void {
    const isRefusal = answer.reason !== undefined && answer.reason !== 'blocked'
    if (!isRefusal) this.#cache.record(policies, key, cost, call, answer)
  }

  forget(key: string): void {
    this.#cache.forget(key)
  }
}
