import type { Answer, Keyspace, Part, Together, WholeReceiver } from '../stores/store.js'
import { decideAtOnce } from '../stores/together.js'
import type { BegunCall } from './denial-cache.js'
import { isOutage } from './failure.js'
import type { ResilientKeyspace } from './resilient-keyspace.js'
import { PendingCall, type StoreRequest } from './store-channel.js'

type ResilientPart = Part & { readonly keyspace: ResilientKeyspace }

/**
 * Decides parts of one store elsewhere as one call to it, under the shortest of their deadlines. If the store cannot decide,
 * each part gets the answer of its own failure mode, and those that are counted in this process are charged all or none.
 */
export class ResilientTogether implements Together {
  readonly program: object

  /** `together` is the store's program that decides calls on several keys in one step. */
  constructor(readonly together: Together) {
    this.program = together.program
  }

  /** Asks the store, whose answers `receiver` gets. Where it cannot be asked, returns those of the failure modes. */
  decide(given: readonly Part[], receiver: WholeReceiver): readonly Answer[] | undefined {
    const parts = given as readonly ResilientPart[]
    const { keyspace, key } = parts[0]!
    const refusal = keyspace.refusal(key)
    if (refusal) return fallBack(parts, refusal, true)
    const { channel } = keyspace.options
    let { deadline } = keyspace.options
    for (const { keyspace: other } of parts) {
      if (other.options.deadline.ms < deadline.ms) deadline = other.options.deadline
    }
    channel.submit(new PendingCall(channel, new WholeRequest(parts, this.together), deadline, receiver))
    return undefined
  }
}

/** The request that asks the store about all parts. */
class WholeRequest implements StoreRequest<readonly Answer[] | undefined> {
  readonly #begun: readonly (BegunCall | undefined)[]

  /** Begins a call for the denial cache of each part. */
  constructor(
    readonly parts: readonly ResilientPart[],
    readonly together: Together,
  ) {
    this.#begun = parts.map(({ keyspace }) => keyspace.options.denials?.begin())
  }

  /** Asks about each part in the store's own keyspace. */
  ask(call: PendingCall<readonly Answer[] | undefined>): void {
    const parts = this.parts.map(({ keyspace, key, cost, enforce }) => {
      return { keyspace: keyspace.options.remote, key, cost, enforce }
    })
    const answers = this.together.decide(parts, call, call)
    if (answers) call.receive(answers)
  }

  /** Records the answers in the denial cache of each part. Without answers, the parts cannot go together. */
  answered(_call: unknown, answers: readonly Answer[] | undefined): void {
    if (!answers) return
    for (const [i, { keyspace, key, cost }] of this.parts.entries()) {
      keyspace.answered({ key, cost, begun: this.#begun[i] }, answers[i]!)
    }
  }

  /** The answers in place of the store's, each by the failure mode of its limiter. */
  fallBack(_call: unknown, failure: unknown): readonly Answer[] {
    return fallBack(this.parts, failure)
  }
}

/**
 * The answers of the failure modes, each part by its own; those in mode 'local' are decided together in memory.
 * @throws the failure if one of the modes is 'throw', before anything is charged.
 */
function fallBack(parts: readonly ResilientPart[], failure: unknown, isUnasked = false): readonly Answer[] {
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
