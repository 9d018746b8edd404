import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import type { Answer, DenialCacheBounds, Store } from '../stores/store.js'
import { ExpiringMap } from '../values/expiring-map.js'

/**
 * Caches a store's denials by key, so that repeated calls on an exhausted key need no round trip. Before the instant that
 * the store named, only a correction can let the denied call pass. A cached denial is therefore valid until then, and at
 * most for `maxAge`, because corrections may come from other processes. All limiters of this process that share a state
 * share its cache.
 *
 * A cached denial applies to calls of the same cost under the same limits, because only the store knows the wait of
 * another call. Up to four costs and tiers are cached per key.
 */
export class DenialCache {
  readonly #denials: ExpiringMap<Denial>
  /** For each corrected key, the number of the last call that was begun before the correction. */
  readonly #corrected: ExpiringMap<number>
  readonly #maxAge: number
  readonly #clock: Pick<Store, 'now'>
  #begun = 0

  /** `clock` is the store. */
  constructor({ maxAge, maxKeys }: DenialCacheBounds, clock: Pick<Store, 'now'>) {
    this.#denials = new ExpiringMap(maxKeys, maxAge)
    this.#corrected = new ExpiringMap(maxKeys, maxAge)
    this.#maxAge = maxAge
    this.#clock = clock
  }

  /** The cached denial as the store would report it now; undefined if the store has to be asked. */
  get(policies: readonly Policy[], key: string, cost: number): Answer | undefined {
    if (!this.#denials.isUsed) return undefined
    const now = this.#clock.now()
    let denial = this.#denials.get(key)
    while (denial && !(now < denial.until && isFor(denial, policies, cost))) denial = denial.next
    if (!denial) return undefined
    const { at, reason, binding, remaining, resetAt, parts } = denial.answer
    const since = denial.answer.now + Math.max(0, now - denial.receivedAt)
    const from = 'cache' as const
    return { now: since, at, reason, binding, remaining, resetAt, parts, booking: undefined, from }
  }

  /** Call it before a call is sent, and pass the result to `record` with the answer. */
  begin(): BegunCall {
    return { number: ++this.#begun, sentAt: this.#clock.now() }
  }

  /** Caches a denial. An admitted call removes the denials of its key. */
  record(policies: readonly Policy[], key: string, cost: number, call: BegunCall, answer: Answer): void {
    if (answer.reason === undefined) {
      if (cost > 0 && this.#denials.isUsed) this.#denials.delete(key)
      return
    }
    const receivedAt = this.#clock.now()
    // The store may have decided as soon as the call was sent.
    const until = call.sentAt + Math.min(answer.at - answer.now, this.#maxAge)
    // Whether the answer includes a correction that was made meanwhile is unknown.
    if (receivedAt >= until || call.number <= (this.#corrected.get(key) ?? 0)) return
    const isOver = (denial: Denial): boolean => receivedAt >= denial.until || isFor(denial, policies, cost)
    const next = firstOf(this.#denials.get(key), MOST_PER_KEY - 1, isOver)
    this.#denials.set(key, { policies, cost, until, receivedAt, answer, next }, receivedAt)
  }

  /** Removes a key whose state was corrected, and ignores the answers of calls that have begun already. */
  forget(key: string): void {
    this.#denials.delete(key)
    this.#corrected.set(key, this.#begun, this.#clock.now())
  }
}

/** The first `most` of a list of denials that are not over. */
function firstOf(
  denial: Denial | undefined,
  most: number,
  isOver: (denial: Denial) => boolean,
): Denial | undefined {
  if (!denial || most === 0) return undefined
  if (isOver(denial)) return firstOf(denial.next, most, isOver)
  const next = firstOf(denial.next, most - 1, isOver)
  return next === denial.next ? denial : { ...denial, next }
}

/** What a keyspace needs of the cache. */
export type Denials = Pick<DenialCache, 'get' | 'begin' | 'record' | 'forget'>

export interface BegunCall {
  readonly number: number
  readonly sentAt: number
}

interface Denial {
  readonly policies: readonly Policy[]
  readonly cost: number
  /** Valid before this instant, counted from when the call was sent. */
  readonly until: number
  /** When the answer came. Waits count from here, so that a reported wait is never too short. */
  readonly receivedAt: number
  readonly answer: Answer
  readonly next: Denial | undefined
}

/** Costs and tiers that are cached per key. */
const MOST_PER_KEY = 4

function isFor(denial: Denial, policies: readonly Policy[], cost: number): boolean {
  return denial.cost === cost && haveEqualNumbers(denial.policies, policies)
}
