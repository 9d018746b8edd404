import type { Answer, Keyspace, Store } from '@sluice/core'
import type { Rule, Write } from '@sluice/testing/internal'

/** Called for each call to which a store admitted units. */
type Admitted = (answer: Answer, cost: number) => void

/**
 * A store for one key, whose decisions must be those of the models. The first list of policies that a process opens is
 * to be decided by the first list of rules, and so on.
 */
export class JudgedStore {
  /** The first decision that differs. */
  wrong: string | undefined
  readonly #server: Store
  readonly #clock: () => number
  readonly #tiers: readonly (readonly Rule[])[]
  /** For each policy of the list. */
  readonly #writes: readonly Write[][]

  constructor(server: Store, clock: () => number, tiers: readonly (readonly Rule[])[]) {
    this.#server = server
    this.#clock = clock
    this.#tiers = tiers
    this.#writes = tiers[0]!.map(() => [])
  }

  /** The store as one process uses it. `admitted` is called with each answer that charged units. */
  as(admitted: Admitted): Store {
    let opened = 0
    const { denialCache } = this.#server
    return {
      ...(denialCache && { denialCache }),
      keyspace: (name, policies, report) => {
        const state = this.#server.keyspace(name, policies, report)
        const rules = this.#tiers[opened++]!
        const decide: Keyspace['decide'] = async (ask, key, cost) => {
          const room = this.#room(rules)
          const isCharged = ask === 'consume' && room >= cost
          if (isCharged) this.#admit(rules, cost)
          const answer = await state.decide(ask, key, cost, 0)
          if (ask === 'consume' && answer.reason === undefined) admitted(answer, cost)
          return this.#compare(answer, cost, room, isCharged ? room - cost : room)
        }
        return { policies, decide } as unknown as Keyspace // nothing else is called
      },
      now: () => this.#server.now(),
      close: () => {},
    }
  }

  /** How many units fit now by the models, under one of the lists of policies. */
  roomIn(tier: number): number {
    return this.#room(this.#tiers[tier]!)
  }

  /** Closes the store that is judged. */
  async close(): Promise<void> {
    await this.#server.close()
  }

  /** How many units fit now by the models, under all policies. */
  #room(rules: readonly Rule[]): number {
    const now = BigInt(this.#clock())
    const rooms = rules.map((rule, i) => {
      const { model } = rule
      return Number(model.room(model.recount(this.#writes[i]!), rule, now))
    })
    return Math.min(...rooms)
  }

  /** All that is admitted at one instant counts as one write: the models count all of them again for each call. */
  #admit(rules: readonly Rule[], cost: number): void {
    const at = BigInt(this.#clock())
    for (const [i, rule] of rules.entries()) {
      const writes = this.#writes[i]!
      const last = writes.at(-1)
      const isSame = last?.at === at && last.rule === rule
      if (isSame) writes.pop()
      writes.push({ kind: 'admit', at, cost: BigInt(cost) + (isSame ? last.cost : 0n), rule })
    }
  }

  /** Returns the answer of the store, and notes the first that is not what the models say: allowed if `room` is enough, with `left` remaining. */
  #compare(answer: Answer, cost: number, room: number, left: number): Answer {
    const isAllowed = answer.reason === undefined
    if (isAllowed !== room >= cost || answer.remaining !== Math.max(0, left))
      this.wrong ??=
        `the store ${isAllowed ? 'admitted' : 'denied'} ${cost} with ${answer.remaining} left, ` +
        `where the model has room for ${room}`
    return answer
  }
}
