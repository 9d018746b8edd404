import type { Decision } from '@sluice/core'
import { storedKey } from '@sluice/core/internal'
import { DecisionCounts } from './decision-counts.js'
import { hashed, type KeyHash } from './key-hash.js'
import type { Post } from './post.js'
import { Sampling } from './sampling.js'
import { SpaceSaving } from './space-saving.js'
import { mergeSummaries, type Summary, summaryOf } from './summary.js'

/** The counts of one limiter: the keys of its denials, the keys of a sample of its calls, and if shared its decisions. */
export class KeyCounts {
  readonly size: number
  readonly #denied: Generations
  readonly #sampled: Generations
  readonly #sampling = new Sampling()
  #decisions: DecisionCounts | undefined

  /** Keeps two lists of `size` keys: with most denials, and with most calls, of which a random sample is counted. */
  constructor(size: number) {
    this.size = size
    this.#denied = new Generations(size)
    this.#sampled = new Generations(size)
  }

  /**
   * Counts decisions by policy and result too, from now on, because the counts are shared: a process that shows the figures of the
   * whole fleet knows only what each process shares.
   */
  countDecisions(): void {
    this.#decisions ??= new DecisionCounts()
  }

  /**
   * Counts a decision for its key: every denial, and of all calls a random sample of 1 in 16. A call that would be denied but for
   * shadow mode has a reason too, and counts as a denial. Long keys are counted by their digest, as stores keep them.
   */
  count(key: string, decision: Decision): void {
    if (decision.reason !== undefined) this.#denied.add(storedKey(key))
    if (this.#sampling.picksThis()) this.#sampled.add(storedKey(key))
    this.#decisions?.add(decision)
  }

  /**
   * Begins to count anew. The counts so far are kept as the previous generation and are listed together with the new ones, so
   * that a key's figures do not restart at 0. Called each half of the window.
   */
  beginGeneration(): void {
    this.#denied.beginGeneration()
    this.#sampled.beginGeneration()
    this.#decisions?.beginGeneration()
  }

  /** The keys with the most denials in the last two generations. */
  denied(): Summary {
    return this.#denied.summary()
  }

  /** The keys with the most calls in the last two generations, as counted in the sample: not yet scaled up to all calls. */
  sampled(): Summary {
    return this.#sampled.summary()
  }

  /** The counts as they are posted, under the limiter's name; `hash` makes the text that is shown in place of a key. */
  post(limiter: string, hash: KeyHash): Post {
    const [denied, sampled] = [hashed(this.denied(), hash), hashed(this.sampled(), hash)]
    return { limiter, size: this.size, denied, sampled, decisions: this.#decisions?.list() ?? [] }
  }
}

/** The heaviest keys of the last two generations: the current one, and the one that ended with the last `beginGeneration`. */
export class Generations {
  #current: SpaceSaving
  #previous: Summary = NOTHING

  /** `size` is the number of keys that a generation keeps. */
  constructor(private readonly size: number) {
    this.#current = new SpaceSaving(size)
  }

  /** Counts one item of a key in the current generation. */
  add(key: string): void {
    this.#current.add(key)
  }

  /**
   * Begins to count anew, so that old calls drop out of the figures. The counts so far are kept as the previous generation, and
   * are listed together with the new ones until the next call of this; the generation before them is forgotten.
   */
  beginGeneration(): void {
    this.#previous = summaryOf(this.#current)
    this.#current = new SpaceSaving(this.size)
  }

  /** The heaviest keys of both generations together, at most `size` of them, with their counts and possible errors. */
  summary(): Summary {
    return mergeSummaries([this.#previous, summaryOf(this.#current)], this.size)
  }
}

const NOTHING: Summary = { total: 0, missed: 0, keys: [] }
