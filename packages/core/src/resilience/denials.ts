import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import type { Answer, DenialCacheBounds } from '../stores/store.js'
import { Generations } from '../values/generations.js'

/**
 * What a store has denied, by key, so that a caller who goes on knocking costs no calls. Nothing but time, or a
 * correction, can let a denied call pass before the instant that the store named: a denial is good until then, and no
 * longer than `maxAge`, as corrections may come from other processes. One cache serves all limiters of this process
 * that share the state.
 *
 * A denial stands for calls of its own cost, under limits equal to its own: how long a heavier call has to wait only the
 * store knows. Up to four costs and tiers are remembered of a key.
 */
export class Denials {
  readonly #denied: Generations<Denial>
  readonly #corrected: Generations<number>
  readonly #maxAge: number
  readonly #now: () => number
  #asked = 0

  /** `now` in microseconds, on the store's clock in this process. */
  constructor({ maxAge, maxKeys }: DenialCacheBounds, now: () => number) {
    this.#denied = new Generations(maxKeys, maxAge)
    this.#corrected = new Generations(maxKeys, maxAge)
    this.#maxAge = maxAge
    this.#now = now
  }

  /** The store's denial as it would read now; undefined where the store has to be asked. */
  find(policies: readonly Policy[], key: string, cost: number): Answer | undefined {
    const now = this.#now()
    let known = this.#denied.get(key)
    while (known && !(now < known.until && isFor(known, policies, cost))) known = known.next
    if (!known) return undefined
    const { at, reason, binding, remaining, resetAt, parts } = known.answer
    const since = known.answer.now + Math.max(0, now - known.heard)
    return { now: since, at, reason, binding, remaining, resetAt, parts, booking: undefined }
  }

  /** Begins a call; give what this returns to `note` with the answer. */
  ask(): Asked {
    return { number: ++this.#asked, sent: this.#now() }
  }

  /** Remembers a denial, and forgets those of the key after a call that was admitted. */
  note(policies: readonly Policy[], key: string, cost: number, asked: Asked, answer: Answer): void {
    if (answer.reason === undefined) return cost > 0 ? this.#denied.delete(key) : undefined
    const heard = this.#now()
    // Redis may have decided as soon as the call was sent, and the answer may have been on its way ever since.
    const until = asked.sent + Math.min(answer.at - answer.now, this.#maxAge)
    // A correction that came in between has or has not been seen: nobody knows.
    if (heard >= until || asked.number <= (this.#corrected.get(key) ?? 0)) return
    const isOver = (denial: Denial): boolean => heard >= denial.until || isFor(denial, policies, cost)
    const next = firstOf(this.#denied.get(key), MOST_PER_KEY - 1, isOver)
    this.#denied.set(key, { policies, cost, until, heard, answer, next }, heard)
  }

  /** Forgets a key whose state was corrected, and what is said about it by calls that are under way. */
  forget(key: string): void {
    this.#denied.delete(key)
    this.#corrected.set(key, this.#asked, this.#now())
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

interface Asked {
  readonly number: number
  readonly sent: number
}

interface Denial {
  readonly policies: readonly Policy[]
  readonly cost: number
  /** Until when it is good, counted from when the call was sent. */
  readonly until: number
  /** When the answer came. Waits count from here: they are never told too short. */
  readonly heard: number
  readonly answer: Answer
  readonly next: Denial | undefined
}

/** Costs and tiers that are remembered of one key. */
const MOST_PER_KEY = 4

function isFor(denial: Denial, policies: readonly Policy[], cost: number): boolean {
  return denial.cost === cost && haveEqualNumbers(denial.policies, policies)
}
