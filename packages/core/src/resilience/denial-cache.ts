import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import type { Answer, DenialCacheBounds, Store } from '../stores/store.js'
import { ExpiringMap } from '../values/expiring-map.js'
import { answerTo } from './peek-cache.js'

/**
 * Caches a store's denials by key, so that repeated calls on an exhausted key need no round trip, whatever their costs. All
 * limiters of this process that share a state share its cache.
 *
 * A denial says two things: its cost and every larger one are denied until the instant that it named, and every cost above
 * what remained until one unit more is free. Only a correction can make that untrue, and corrections may come from other
 * processes, so it is held to be true for at most `maxAge`. It says nothing of calls under other limits.
 *
 * The store alone knows the exact wait of a cost. Four costs of a key therefore ask, and are denied with their own waits. Any
 * other that is known to be denied is denied without asking: with the wait of a larger cost that is cached, otherwise until
 * the allowance is full, so that no wait is too short.
 */
export class DenialCache {
  /** The denials of a key, the newest first. */
  readonly #denials: ExpiringMap<readonly RememberedDenial[]>
  /** For each corrected key, the number of the last call that was begun before the correction. */
  readonly #corrected: ExpiringMap<number>
  #begun = 0

  /**
   * Makes an empty cache of denials by key (`#denials`). `bounds` are the most keys and the longest age of a denial, in microseconds;
   * `clock` is the store's. `#corrected` notes keys that were corrected, as by a refund: a denial that was on its way then may be out
   * of date, and is not remembered.
   */
  constructor(
    private readonly bounds: DenialCacheBounds,
    private readonly clock: Pick<Store, 'now'>,
  ) {
    this.#denials = new ExpiringMap(bounds.maxKeys, bounds.maxAge)
    this.#corrected = new ExpiringMap(bounds.maxKeys, bounds.maxAge)
  }

  /**
   * Returns a denial if the remembered denials of the key show that the store would deny this call now; undefined if the store has
   * to be asked. A cost that was denied before gets its own denial again. Up to four costs of a key are still sent to the store
   * though they are surely denied, to learn their exact wait. Any further cost gets the denial of a larger cost, whose wait is no
   * shorter than its own, or else a wait until the allowance is full.
   */
  get(policies: readonly Policy[], key: string, cost: number): Answer | undefined {
    if (!this.#denials.isUsed) return undefined
    const denials = this.#denials.get(key)
    if (!denials) return undefined
    const now = this.clock.now()
    let costsKnown = 0
    let isDenied = false
    let newest: RememberedDenial | undefined
    let larger: RememberedDenial | undefined
    for (const denial of denials) {
      if (now >= denial.until || !haveEqualNumbers(denial.policies, policies)) continue
      if (cost === denial.cost) return answerAt(now, denial)
      if (cost > denial.cost || (cost > denial.answer.remaining && now < denial.scarceUntil)) isDenied = true
      const waitsLess = !larger || denial.waitEndsAt < larger.waitEndsAt
      if (cost < denial.boundsCostsBelow && waitsLess) larger = denial
      newest ??= denial
      costsKnown++
    }
    if (!isDenied) return undefined
    // Calls that are made at once may not ask beyond the four either.
    if (costsKnown + newest!.asking < ASKING_COSTS) {
      newest!.asking++
      return undefined
    }
    if (larger) return answerAt(now, larger)
    return { from: 'cache', ...answerTo(cost, newest!, answerAt(now, newest!).now) }
  }

  /**
   * Notes that a call is about to be sent. Returns its number and the instant, by which `record` later sees whether the key was
   * corrected meanwhile, and since when the answer may be valid.
   */
  begin(): BegunCall {
    return { number: ++this.#begun, sentAt: this.clock.now() }
  }

  /**
   * Records the answer to a call that `begin` has noted. A denial is remembered until the wait that it names is over, but no longer
   * than `maxAge`; it is not if the key was corrected while the call was on its way. An allowed call with a cost proves the key's
   * denials wrong, and removes them. Instants of the answer are on the store's clock, so only their distances from its `now` are
   * used, counted from when the call was sent, as the store may have decided then.
   */
  record(policies: readonly Policy[], key: string, cost: number, call: BegunCall, answer: Answer): void {
    if (answer.reason === undefined) {
      if (cost > 0 && this.#denials.isUsed) this.#denials.delete(key)
      return
    }
    const receivedAt = this.clock.now()
    // The store may have decided as soon as the call was sent.
    const validUntil = (instant: number): number =>
      call.sentAt + Math.min(instant - answer.now, this.bounds.maxAge)
    const until = validUntil(answer.at)
    // Whether the answer includes a correction that was made meanwhile is unknown.
    if (receivedAt >= until || call.number <= (this.#corrected.get(key) ?? 0)) return
    const scarceUntil = validUntil(answer.nextUnitAt ?? answer.now)
    const waitEndsAt = receivedAt + answer.at - answer.now
    const boundsCostsBelow = cost
    const denial = {
      policies,
      cost,
      boundsCostsBelow,
      until,
      scarceUntil,
      receivedAt,
      waitEndsAt,
      answer,
      asking: 0,
    }
    this.#denials.set(key, withEarlier(denial, this.#denials.get(key) ?? []), receivedAt)
  }

  /**
   * Removes what is remembered of a key whose state was corrected. Answers to calls that have begun already will not be recorded,
   * as the store may have decided them before the correction.
   */
  forget(key: string): void {
    this.#denials.delete(key)
    this.#corrected.set(key, this.#begun, this.clock.now())
  }
}

export interface BegunCall {
  readonly number: number
  readonly sentAt: number
}

/** Instants are those of this process. */
interface RememberedDenial {
  readonly policies: readonly Policy[]
  readonly cost: number
  /** Costs below this one have to wait no longer than it: its own, or a smaller one that was later told to wait longer. */
  boundsCostsBelow: number
  /** The cost and all larger ones are denied before this instant, counted from when the call was sent. */
  readonly until: number
  /** Costs above what remained are denied before this instant, which is no later than `until`. */
  readonly scarceUntil: number
  /** When the answer came. Waits count from here, so that a reported wait is never too short. */
  readonly receivedAt: number
  /** The end of the wait that is reported. */
  readonly waitEndsAt: number
  readonly answer: Answer
  /** Of the newest under its limits: calls that were let through though it denies them, and have no answer yet. */
  asking: number
}

/** Costs of a key that ask under the same limits. */
const ASKING_COSTS = 4
/** Denials that are cached of a key, under all limits that it is called with. */
const MOST_PER_KEY = 16

/**
 * Returns the denials to keep of a key, the newest first: `denial`, and those of the `earlier` ones that are still valid. Under the
 * same limits at most three of other costs are kept, as four costs of a key may ask for their exact wait; under all limits 16. An
 * earlier one that names a shorter wait than this smaller cost got bounds the waits only of costs that are smaller still.
 * The new denial takes over the number of calls that are `asking` the store now, less this one, which has its answer.
 */
function withEarlier(
  denial: RememberedDenial,
  earlier: readonly RememberedDenial[],
): readonly RememberedDenial[] {
  const { policies, cost, receivedAt, waitEndsAt } = denial
  const kept = [denial]
  let otherCosts = 0
  for (const other of earlier) {
    if (receivedAt >= other.until) continue
    if (!haveEqualNumbers(other.policies, policies)) {
      kept.push(other)
      continue
    }
    denial.asking = Math.max(denial.asking, other.asking - 1)
    const isBoundTooShort = other.waitEndsAt < waitEndsAt
    if (isBoundTooShort && cost < other.boundsCostsBelow) other.boundsCostsBelow = cost
    if (other.cost !== cost && ++otherCosts < ASKING_COSTS) kept.push(other)
  }
  return kept.slice(0, MOST_PER_KEY)
}

/**
 * Returns a remembered denial as the store would answer at `now` (on this process's clock). Its instants stay the same; only its
 * own `now` moves on by the time since it came, so its waits are shorter by that.
 */
function answerAt(now: number, { answer, receivedAt }: RememberedDenial): Answer {
  const { at, reason, binding, remaining, resetAt, parts, used, held, nextEnd } = answer
  const movedOn = answer.now + Math.max(0, now - receivedAt)
  const kept = { at, reason, binding, remaining, resetAt, parts, used, held, nextEnd } as const
  return { now: movedOn, booking: undefined, from: 'cache', ...kept }
}
