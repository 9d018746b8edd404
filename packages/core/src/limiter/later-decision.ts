import type { Answer, Receiver } from '../stores/store.js'
import { Decision } from './decision.js'
import type { PolicySet } from './policy-set.js'

/** Asks a keyspace that has `consume`. Each decision goes through `emit` on its way to the caller. */
export function decideLater(
  set: PolicySet,
  key: string,
  stored: string,
  cost: number,
  emit: (key: string, decision: Decision) => Decision,
): Decision | Promise<Decision> {
  const later = new LaterDecision(set, key, stored, cost, emit)
  const known = set.keyspace.consume!(stored, cost, later)
  return known ? later.decisionOf(known) : later.promise()
}

/** The one promise of a call, and what the decision is made of. */
class LaterDecision implements Receiver<Answer> {
  #resolve!: (decision: Decision) => void
  #reject!: (error: unknown) => void

  constructor(
    readonly set: PolicySet,
    readonly key: string,
    readonly stored: string,
    readonly cost: number,
    readonly emit: (key: string, decision: Decision) => Decision,
  ) {}

  promise(): Promise<Decision> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  answered(answer: Answer): void {
    let decision: Decision
    try {
      decision = this.decisionOf(answer)
    } catch (error) {
      return this.#reject(error)
    }
    this.#resolve(decision)
  }

  failed(error: unknown): void {
    this.#reject(error)
  }

  decisionOf(answer: Answer): Decision {
    const { set, key, stored, cost } = this
    return this.emit(key, new Decision(set, answer, key, stored, cost))
  }
}
