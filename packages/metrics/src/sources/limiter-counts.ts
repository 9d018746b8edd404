import type { Answer, DecidedBy, Decision, Policy } from '@sluice/core'
import { policiesOf } from '@sluice/core/internal'
import type { InstrumentId } from '../instruments.js'
import type { Observe, Source } from '../sinks/sink.js'
import { BoundedLabels } from './bounded-labels.js'
import { LimiterState } from './limiter-state.js'
import { PolicyCounts, resultOf } from './policy-counts.js'
import { ResultCounts } from './result-counts.js'
import { MOST_TAGS } from './tag-of.js'

/**
 * The numbers of all limiters of one name: several may share it, and counters must never fall. A key is never a label, and
 * every other label is bounded.
 */
export class LimiterCounts implements Source {
  readonly state: LimiterState
  readonly tags = new ResultCounts(MOST_TAGS)
  readonly isOver = false
  readonly #policies = new BoundedLabels(MOST_POLICIES)
  /** By the number of the policy's name. */
  readonly #counts: PolicyCounts[] = []
  readonly #countsByList = new WeakMap<readonly Policy[], readonly PolicyCounts[]>()
  /** The list of policies of the last decision, and its counts. */
  #lastList: readonly Policy[] | undefined
  #lastCounts: readonly PolicyCounts[] = []

  /** `name` is that of the limiters. */
  constructor(private readonly name: string) {
    this.state = new LimiterState(name)
  }

  /** Makes the counts of each policy in a list, so that its limit and window are reported before the first decision by it. */
  announce(policies: readonly Policy[]): void {
    this.#countsFor(policies)
  }

  /**
   * Counts a decision under its binding policy, the one with the least left or the longest wait. If the policies were asked (not
   * for a block, a hold or a store that failed), also counts for each policy whether it denied the call by itself, and what share of
   * its capacity is used. A call on an exempt key counts under no policy.
   */
  count(decision: Decision, decidedBy: DecidedBy): void {
    if (decision.exempt) return
    const policies = policiesOf(decision)
    const counts = policies === this.#lastList ? this.#lastCounts : this.#countsFor(policies)
    const answer = answerOf(decision)
    const { reason } = decision
    const result = resultOf(decision)
    const isAllowed = result === 0 // not where shadow mode alone allows it
    counts[answer.binding]!.countDecision(result, reason, decidedBy)
    const werePoliciesAsked = reason === undefined || reason === 'limit' || reason === 'cost'
    if (decidedBy === 'none' || !werePoliciesAsked) return
    const { parts, now, remaining } = answer
    if (policies.length === 1) {
      counts[0]!.countEvaluation(!isAllowed, remaining, policies[0]!.capacity)
    } else if (parts) {
      for (let i = 0; i < counts.length; i++) {
        // Of several policies the answer has three numbers each; the third is when the policy is full again.
        const allowsFrom = parts[3 * i]!
        const left = parts[3 * i + 1]!
        counts[i]!.countEvaluation(!isAllowed && allowsFrom > now, left, policies[i]!.capacity)
      }
    }
  }

  /** Reports the values of one instrument to `observe`: of each policy, of each tag, or of the limiters' state. */
  read(instrument: InstrumentId, observe: Observe): void {
    const read = READ[instrument]
    if (read) for (const counts of this.#counts) counts[read](observe)
    else if (instrument === 'tags') this.#readTags(observe)
    else this.state.report(instrument, observe)
  }

  /** Reports how many decisions of each tag, the text that the user's function makes of a key, had each result. */
  #readTags(observe: Observe): void {
    this.tags.forEach((tag, result, count) => observe(count, { limiter: this.name, tag, result }))
  }

  /**
   * Returns the counts of each policy in a list, in its order. Notes the list, so that `count` finds them faster if the next
   * decision is under the same list. Several lists may have policies of one name, such as those of tiers, which share their counts:
   * `use` notes the limit and window of the latest, to be reported.
   */
  #countsFor(policies: readonly Policy[]): readonly PolicyCounts[] {
    let counts = this.#countsByList.get(policies)
    if (!counts) {
      counts = policies.map((policy) => this.#countsOf(policy))
      this.#countsByList.set(policies, counts)
    }
    for (let i = 0; i < counts.length; i++) counts[i]!.use(policies[i]!)
    this.#lastList = policies
    this.#lastCounts = counts
    return counts
  }

  /** The counts of all policies of this name, made for the first. Beyond 32 names, all further ones share the counts of 'other'. */
  #countsOf(policy: Policy): PolicyCounts {
    const number = this.#policies.numberFor(policy.name)
    const label = this.#policies.labels[number]!
    return (this.#counts[number] ??= new PolicyCounts(this.name, label, policy))
  }
}

/** The method that reads each instrument's counts of a policy. */
const READ: { readonly [Id in InstrumentId]?: keyof PolicyCounts & `read${string}` } = {
  decisions: 'readDecisions',
  evaluations: 'readEvaluations',
  utilization: 'readUtilization',
  limit: 'readLimit',
  window: 'readWindow',
}

/** Names of policies of one limiter, its tiers included. */
const MOST_POLICIES = 32

const ANSWER: unique symbol = Symbol.for('sluice.answer') as never

/**
 * The store's answer behind a decision. The symbol that it is kept under is registered for the process, so decisions of
 * any copy of @sluice/core have it. Reading it allocates nothing.
 */
function answerOf(decision: Decision): Answer {
  return (decision as unknown as { readonly [ANSWER]: Answer })[ANSWER]
}
