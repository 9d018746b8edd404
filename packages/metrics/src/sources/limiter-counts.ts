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
  readonly #rows: PolicyCounts[] = []
  readonly #rowsByList = new WeakMap<readonly Policy[], readonly PolicyCounts[]>()
  #list: readonly Policy[] | undefined
  #listRows: readonly PolicyCounts[] = []

  /** `name` is that of the limiters. */
  constructor(private readonly name: string) {
    this.state = new LimiterState(name)
  }

  /** Makes the counts of each policy in a list, so that its limit and window are reported before the first decision by it. */
  announce(policies: readonly Policy[]): void {
    this.#rowsFor(policies)
  }

  /**
   * Counts a decision under its binding policy, the one with the least left or the longest wait. If the policies
   * themselves were asked (not for a block, a hold or a store that failed), also counts for each policy whether it denied
   * the call by itself, and what share of its capacity is used. `result` is 0 for allowed. A call on an exempt key counts under no policy.
   */
  count(decision: Decision, decidedBy: DecidedBy): void {
    if (decision.exempt) return // no policy was asked
    const policies = policiesOf(decision)
    const rows = policies === this.#list ? this.#listRows : this.#rowsFor(policies)
    const answer = answerOf(decision)
    const { reason } = decision
    const result = resultOf(decision)
    rows[answer.binding]!.countDecision(result, reason, decidedBy)
    if (decidedBy === 'none' || !(reason === undefined || reason === 'limit' || reason === 'cost')) return
    // Of several policies the answer has three numbers each: the instant from which the policy allows the call, what remains
    // of it, and when it is full again.
    const { parts, now, remaining } = answer
    if (policies.length === 1) {
      rows[0]!.countEvaluation(result !== 0, remaining, policies[0]!.capacity)
    } else if (parts) {
      for (let i = 0; i < rows.length; i++) {
        const isDenied = result !== 0 && parts[3 * i]! > now
        rows[i]!.countEvaluation(isDenied, parts[3 * i + 1]!, policies[i]!.capacity)
      }
    }
  }

  /**
   * Reports the values of one instrument to `observe`: of each policy, of each tag, or of the limiters' state, whichever
   * the instrument is about.
   */
  read(instrument: InstrumentId, observe: Observe): void {
    const read = READ[instrument]
    if (read) for (const row of this.#rows) row[read](observe)
    else if (instrument === 'tags') this.#readTags(observe)
    else this.state.read(instrument, observe)
  }

  /** Reports how many decisions of each tag, the text that the user's function makes of a key, had each result. */
  #readTags(observe: Observe): void {
    this.tags.forEach((tag, result, count) => observe(count, { limiter: this.name, tag, result }))
  }

  /**
   * Returns the counts of each policy of a list, in its order, and notes the list, so that `count` finds them faster if the next
   * decision is by the same one. Lists may hold other policies of the same name, such as the tiers of customers, which share
   * their counts: `use` notes the limit and window of the latest, to be reported.
   */
  #rowsFor(policies: readonly Policy[]): readonly PolicyCounts[] {
    let rows = this.#rowsByList.get(policies)
    if (!rows) this.#rowsByList.set(policies, (rows = policies.map((policy) => this.#rowFor(policy))))
    for (let i = 0; i < rows.length; i++) rows[i]!.use(policies[i]!)
    this.#list = policies
    this.#listRows = rows
    return rows
  }

  /**
   * The counts of the policies of this name, made with the first. Beyond 32 names of policies, all further ones share the
   * counts of 'other'.
   */
  #rowFor(policy: Policy): PolicyCounts {
    const number = this.#policies.numberFor(policy.name)
    const label = this.#policies.labels[number]!
    return (this.#rows[number] ??= new PolicyCounts(this.name, label, policy))
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
