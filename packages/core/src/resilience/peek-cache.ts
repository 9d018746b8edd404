import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import { type Answer, type Store, usedOf } from '../stores/store.js'
import { ExpiringMap } from '../values/expiring-map.js'

/**
 * Caches what a store says of keys to calls that are denied whatever it says: those of a cost above the capacity, and those on
 * several keys of which another is known to be denied. It is asked by a `peek`, at most once a second a key and list of limits,
 * for at most 10,000 keys. All limiters of this process that share a state share its cache.
 */
export class PeekCache {
  /** Whether a peek was ever sent, so that all other calls need not look for one. */
  isUsed = false
  /** The peeks at a key, the newest first, each under other limits. */
  readonly #peeks = new ExpiringMap<readonly Peek[]>(MOST_KEYS, LIFE)

  /** A cache without peeks, on the clock of the store. */
  constructor(private readonly clock: Pick<Store, 'now'>) {}

  /** The peek of the last second at a key under these limits. It may have no answer yet. */
  get(policies: readonly Policy[], key: string): Peek | undefined {
    const peek = this.#peeks.get(key)?.find((each) => haveEqualNumbers(each.policies, policies))
    return peek && this.clock.now() - peek.askedAt < LIFE ? peek : undefined
  }

  /**
   * Sends a peek, a call that only reads, by `send`, and returns it at once. It gets its `answer`, or `failure`, when that comes, which
   * resolves `ended`. It is kept for its key, in place of an earlier one under the same limits, beside some under others.
   */
  begin(policies: readonly Policy[], key: string, cost: number, send: () => Promise<Answer>): Peek {
    const askedAt = this.clock.now()
    const ended = send().then(
      (answer) => this.record(peek, cost, answer),
      (error: unknown) => void (peek.failure = error),
    )
    const peek: Peek = { policies, cost, askedAt, ahead: 0, ended }
    const others = this.#peeks.get(key)?.filter((other) => !haveEqualNumbers(other.policies, policies)) ?? []
    this.#peeks.set(key, [peek, ...others.slice(0, MOST_PER_KEY - 1)], askedAt)
    this.isUsed = true
    return peek
  }

  /** Records what the store has answered about `cost` as the answer of this peek, and how far the store's clock is ahead. */
  record(peek: Peek, cost: number, answer: Answer): void {
    Object.assign(peek, { cost, answer, ahead: answer.now - this.clock.now() })
  }

  /** Records the answer to any other call as that of its key's peek, if there is one and the answer is newer. */
  learn(policies: readonly Policy[], key: string, cost: number, answer: Answer): void {
    const peek = this.get(policies, key)
    if (peek?.answer && answer.now >= peek.answer.now) this.record(peek, cost, answer)
  }

  /** Returns how a cost stands now, by a peek that has its answer. */
  read(peek: Peek, cost: number): Answer {
    return answerTo(cost, peek as Known, this.clock.now() + peek.ahead)
  }

  /** Removes what is known of a key whose state was corrected. */
  forget(key: string): void {
    this.#peeks.delete(key)
  }
}

/** An answer about a cost under these policies. */
interface Known {
  readonly policies: readonly Policy[]
  readonly cost: number
  readonly answer: Answer
}

/** Instants are those of this process; `ahead` is how far the clock of the answer was ahead of it. */
export interface Peek extends Omit<Known, 'answer'> {
  readonly answer?: Answer
  readonly askedAt: number
  readonly ahead: number
  failure?: unknown
  /** Resolves when there is an answer or a failure. */
  readonly ended: Promise<void>
}

/** Microseconds. */
const LIFE = 1_000_000
const MOST_KEYS = 10_000
/** Under all limits that a key is called with. */
const MOST_PER_KEY = 16

/**
 * Returns how a cost stands at the instant `now`, made from an `earlier` answer about the same cost or another. If that does not
 * tell how long the cost waits under a policy, it waits until the policy is full, so that no wait is too short. Each list of parts
 * has three numbers a policy: earliest instant, remaining, resetAt. The policy with the latest instant, or of a cost that passes
 * the one with the least remaining, is binding.
 */
export function answerTo(
  cost: number,
  { policies, cost: earlierCost, answer: earlier }: Known,
  now: number,
): Answer {
  const { at, reason, remaining, resetAt, parts: earlierParts = [at, remaining, resetAt] } = earlier
  const isBarred = (reason === 'blocked' || reason === 'held') && at > now
  const parts: number[] = []
  const used = policies.map((policy, i) => usedOf(earlier, policy, i))
  // The places in `parts` of the policy with the latest instant, and of that with the least remaining.
  let [latest, least] = [0, 0]
  for (let i = 0; i < earlierParts.length; i += 3) {
    const { capacity } = policies[i / 3]!
    const earlierPassesAt = earlierParts[i]!
    const earlierLeft = earlierParts[i + 1]!
    const fullAt = earlierParts[i + 2]!
    const hasBecomeFull = earlier.now < fullAt && fullAt <= now
    const left = hasBecomeFull ? capacity : earlierLeft
    if (hasBecomeFull) used[i / 3] = 0
    const isWaitKnown = reason && cost <= earlierCost
    const waitEnd = isWaitKnown ? Math.min(earlierPassesAt, fullAt) : fullAt
    const fits = cost <= left && !isBarred
    const passesAt = cost > capacity ? Infinity : fits ? now : Math.max(now, waitEnd)
    parts.push(passesAt, left, Math.max(now, fullAt))
    if (passesAt > parts[latest]!) latest = i
    if (left < parts[least + 1]!) least = i
  }
  const isDenied = parts[latest]! > now
  const denialReason = parts[latest] === Infinity ? 'cost' : isBarred ? reason : 'limit'
  return {
    now,
    at: parts[latest]!,
    reason: isDenied ? denialReason : undefined,
    binding: (isDenied ? latest : least) / 3,
    remaining: parts[least + 1]!,
    resetAt: Math.max(...parts.filter((_, i) => i % 3 === 2)),
    parts: policies.length > 1 ? parts : undefined,
    used,
    held: earlier.held?.map((units, i) => Math.min(units, used[i]!)),
    nextEnd: earlier.nextEnd,
    booking: undefined,
  }
}
