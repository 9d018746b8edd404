import type { Answer, Keyspace, Part, Together, WholeReceiver } from '../stores/store.js'
import { decideAtOnce } from '../stores/together.js'
import type { Deadline } from './deadline.js'
import type { BegunCall } from './denial-cache.js'
import { isOutage } from './failure.js'
import type { ResilientKeyspace } from './resilient-keyspace.js'
import type { PendingCall, StoreChannel, StoreRequest } from './store-channel.js'

type ResilientPart = Part & { readonly keyspace: ResilientKeyspace }

/**
 * Decides parts of one store elsewhere as one call to it, under the shortest of their deadlines. If the store cannot decide,
 * each part gets the answer of its own failure mode, and those that are counted in this process are charged all or none.
 */
export class ResilientTogether implements Together {
  readonly program: object

  /** Guards `together`, the store's own means to decide calls on several keys in one step. */
  constructor(readonly together: Together) {
    this.program = together.program
  }

  /** Makes the store ready for calls on keys of these keyspaces. Returns false if it cannot decide them in one step. */
  prepare(keyspaces: readonly ResilientKeyspace[]): boolean {
    return this.together.prepare?.(keyspaces.map(({ options }) => options.remote)) ?? true
  }

  /**
   * Decides the parts of a call (keys with their costs) by one call to the store. Returns undefined then, and `receiver` gets the
   * answers later. If the store may not be asked now (`refusal`), returns the answers of the failure modes; the first part's
   * keyspace says that for all, as all are of one store. The shortest deadline of the parts' limiters applies, so that no limiter
   * waits longer than its own. The call as a whole has no key and no cost ('', 0).
   */
  decide(given: readonly Part[], receiver: WholeReceiver): readonly Answer[] | undefined {
    const parts = given as readonly ResilientPart[]
    const { keyspace, key } = parts[0]!
    const refusal = keyspace.refusalWithProbe(key)
    if (refusal) return answerByFailureMode(parts, refusal, true)
    const { channel } = keyspace
    const [deadline] = parts.map((part) => part.keyspace.deadline).toSorted((a, b) => a.ms - b.ms)
    channel.submit(new WholeRequest(parts, this.together, channel, deadline!), receiver, '', 0)
    return undefined
  }
}

/** The request that asks the store about all parts. */
class WholeRequest implements StoreRequest<readonly Answer[] | undefined> {
  #begun: readonly (BegunCall | undefined)[] = []

  /**
   * Makes the request that decides all `parts` of a call, one for each key, in one step of the store (`together`). It is sent by
   * `channel`, and has to be answered within `deadline`.
   */
  constructor(
    readonly parts: readonly ResilientPart[],
    readonly together: Together,
    readonly channel: StoreChannel,
    readonly deadline: Deadline,
  ) {}

  /**
   * Asks the store to decide all parts in one step, by its own keyspaces (`remote`) in place of those that guard them. `call` gets
   * the answers, from the store or, if the store returns them, here; it also tells the store whether the caller has given up. Each
   * part's cache of denials first notes that the call begins: if the key is corrected before the answer comes, the cache will not
   * keep a denial.
   */
  ask(call: PendingCall<readonly Answer[] | undefined>): undefined {
    this.#begun = this.parts.map(({ keyspace }) => keyspace.options.denials?.begin())
    const parts = this.parts.map(({ keyspace, key, cost, enforce }) => {
      return { keyspace: keyspace.options.remote, key, cost, enforce }
    })
    const answers = this.together.decide(parts, call, call)
    if (answers) call.receive(answers)
  }

  /**
   * Hands each part's answer to its keyspace, which records denials and the end of an outage. Without answers the store could not
   * decide these keys in one step, and nothing is recorded.
   */
  noteAnswer(_call: unknown, answers: readonly Answer[] | undefined): void {
    if (!answers) return
    for (const [i, { keyspace, key, cost }] of this.parts.entries()) {
      keyspace.noteAnswer({ key, cost, begun: this.#begun[i] }, answers[i]!)
    }
  }

  /** Returns the answers in place of the store's, each by the failure mode of the part's limiter. */
  answerByFailureMode(_call: unknown, failure: unknown): readonly Answer[] {
    return answerByFailureMode(this.parts, failure)
  }
}

/**
 * Returns the answers to a call on several keys that the store did not decide. Each part is decided by the failure mode of its
 * limiter, and as usual all are charged, in this process, or none. `isUnasked` says that the store was not even asked.
 * @throws the failure, before anything is charged, if it is a misuse and no outage, or if one of the modes is 'throw'.
 */
function answerByFailureMode(
  parts: readonly ResilientPart[],
  failure: unknown,
  isUnasked = false,
): readonly Answer[] {
  if (!isOutage(failure)) throw failure
  for (const { keyspace } of parts) keyspace.options.health.degraded(failure)
  return decideAtOnce(
    parts.map(({ keyspace, key, cost, enforce }) => {
      const decide: Keyspace['decide'] = (kind, _key, _cost, maxWait) =>
        keyspace.decideWithout({ kind, key, cost, maxWait }, failure, isUnasked)
      return { keyspace: { decide }, key, cost, enforce }
    }),
  )
}
