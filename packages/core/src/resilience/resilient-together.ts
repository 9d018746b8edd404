import type { Answer, Keyspace, Part, Together } from '../stores/store.js'
import { decideAtOnce } from '../stores/together.js'
import { isOutage } from './failure.js'
import type { ResilientKeyspace } from './resilient-keyspace.js'
import { PendingCall, type StoreRequest } from './store-channel.js'

type Answers = readonly Answer[] | undefined
type ResilientPart = Part & { readonly keyspace: ResilientKeyspace }

/**
 * Decides parts of one store elsewhere as one call to it, under the shortest of their deadlines. If the store cannot decide,
 * each part gets the answer of its own failure mode, and those that are counted in this process are charged all or none.
 */
export class ResilientTogether implements Together {
  readonly program: object
  readonly #together: Together

  /** `together` is the store's program that decides calls on several keys in one step. */
  constructor(together: Together) {
    this.program = together.program
    this.#together = together
  }

  /**
   * Decides the parts of a call on several keys, within the shortest deadline of their limiters. Where the store cannot
   * be asked, their failure modes decide.
   */
  async decide(given: readonly Part[]): Promise<Answers> {
    const parts = given as readonly ResilientPart[]
    const { keyspace, key } = parts[0]!
    const { channel } = keyspace.options
    const refusal = keyspace.refusal(key)
    if (refusal) return fallBack(parts, refusal, true)
    const deadlines = parts.map((part) => part.keyspace.options.deadline)
    const deadline = deadlines.reduce((one, other) => (other.ms < one.ms ? other : one))
    return new Promise((answered, failed) => {
      channel.submit(new PendingCall(channel, this.#requestFor(parts), deadline, { answered, failed }))
    })
  }

  /** The request that asks the store about all parts, each with the store's own keyspace. */
  #requestFor(parts: readonly ResilientPart[]): StoreRequest<Answers> {
    const begun = parts.map(({ keyspace }) => keyspace.options.denials?.begin())
    const remote = parts.map((part) => ({ ...part, keyspace: part.keyspace.options.remote }))
    return {
      ask: (call) => call.receive(this.#together.decide(remote, call)),
      answered: (_call, answers) => {
        if (!answers) return
        for (const [i, { keyspace, key, cost }] of parts.entries()) {
          keyspace.answered({ key, cost, begun: begun[i] }, answers[i]!)
        }
      },
      fallBack: (_call, failure) => fallBack(parts, failure),
    }
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
