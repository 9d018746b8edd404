import type { Answer, Receiver } from '../stores/store.js'
import { Decision } from './decision.js'
import type { PolicySet } from './policy-set.js'

/** Reports a decision to listeners. `storeMs` is what the call waited for the store. */
export type ReportDecision = (
  key: string,
  cost: number,
  answer: Answer,
  decision: Decision,
  storeMs: number,
) => void

/**
 * The decision of a keyspace that is elsewhere. `answer` is what it promised; undefined for a keyspace with `consume`, which is
 * asked here: it answers through a callback, so that a call makes one promise and not two. The decision is reported, if that is
 * wanted, before the caller gets it.
 */
export function decideLater(
  set: PolicySet,
  key: string,
  stored: string,
  cost: number,
  answer: Promise<Answer> | undefined,
  report: ReportDecision | undefined,
): Decision | Promise<Decision> {
  const later = new LaterDecision(set, key, cost, report)
  if (answer) return answer.then((known) => later.decisionOf(known, later.waited))
  const known = set.keyspace.consume!(stored, cost, later)
  return known ? later.decisionOf(known, 0) : later.promise()
}

/** The one promise of a call, and what the decision is made of. */
class LaterDecision implements Receiver<Answer> {
  #sentAt = 0
  #resolve!: (decision: Decision) => void
  #reject!: (error: unknown) => void

  constructor(
    readonly set: PolicySet,
    readonly key: string,
    readonly cost: number,
    readonly report: ReportDecision | undefined,
  ) {
    if (report) this.#sentAt = performance.now()
  }

  /** Milliseconds since the call; 0 if they are not reported. */
  get waited(): number {
    return this.report ? performance.now() - this.#sentAt : 0
  }

  promise(): Promise<Decision> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  answered(answer: Answer): void {
    let decision: Decision
    try {
      decision = this.decisionOf(answer, this.waited)
    } catch (error) {
      return this.#reject(error)
    }
    this.#resolve(decision)
  }

  failed(error: unknown): void {
    this.#reject(error)
  }

  decisionOf(answer: Answer, storeMs: number): Decision {
    const { set, key, cost } = this
    const decision = new Decision(set, answer, key, cost)
    this.report?.(key, cost, answer, decision, storeMs)
    return decision
  }
}
