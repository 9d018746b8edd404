import type { Decision, Limiter } from '@sluice/core'
import { isPromise } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type AskAboutSeveral, chain, type Denied, getOrMake, type GuardSteps } from '@sluice/http'
import type { Call } from './options.js'
import { nest } from './platform.js'

/*
 * A GraphQL request may run one operation under thousands of aliases, all in one tick. The first denial of a limiter decides
 * the later operations under the same key: neither the store nor any callback is asked again. A remote store would be asked
 * about all of them before its first reply, so only some operations of a request ask at once; the others wait.
 */

/** A limiter's denial of a request, which decides the later operations of the same request. */
interface EarlierDenial {
  readonly decision: Decision
  readonly cost: number
  /** The permits of which one was refused: it decides operations that need the same. undefined if it decides all. */
  readonly permits?: string | undefined
  /** The answer of each guard of the limiter. */
  readonly answers: Map<object, MaybePromise<Denied>>
}

/** The steps of one guard, for operations with what the request's earlier operations have shown. */
export class OperationSteps implements GuardSteps<Call, Call> {
  readonly limiter: Limiter
  readonly #steps: GuardSteps<Call, Call>

  /**
   * Wraps the `steps` of a guard, which takes the steps of this object in their place: `count` finds the cost of a call,
   * `ask` asks the limiter, and `deny` answers a denial. A GraphQL request may hold thousands of operations. Once the limiter
   * has denied one of them, the same denial answers the later ones that it decides, and the limiter is not asked about them.
   */
  constructor(steps: GuardSteps<Call, Call>) {
    this.limiter = steps.limiter
    this.#steps = steps
  }

  /**
   * Finds the cost of an operation of this key and asks the limiter. If an earlier denial of the same GraphQL request
   * decides the operation, it gets that answer instead, and neither a callback nor a store is asked. A call is request
   * and response in one, so it is passed twice.
   */
  count(call: Call, _call: Call, key: string): MaybePromise<Denied | undefined> {
    const earlier = call.kind === 'graphql' && this.#deniedEarlier(call, key)
    return earlier || this.#steps.count(call, call, key)
  }

  /**
   * Asks the limiter about an operation of a GraphQL request. It waits while 16 operations of the same request and key
   * are being asked about. If one of them is denied meanwhile, and that denial decides this operation too, the limiter is
   * not asked.
   */
  ask(call: Call, _call: Call, key: string, cost: number): MaybePromise<Denied | undefined> {
    if (call.kind !== 'graphql') return this.#steps.ask(call, call, key, cost)
    return this.#operationsOf(call, key).run(
      () => this.#deniedEarlier(call, key, cost) ?? this.#steps.ask(call, call, key, cost),
    )
  }

  /** Answers a denial. Of a GraphQL request the denial is kept, and decides the later operations under the same key. */
  deny(call: Call, _call: Call, key: string, cost: number, decision: Decision): MaybePromise<Denied> {
    if (call.kind !== 'graphql') return this.#steps.deny(call, call, key, cost, decision)
    return this.#answer(call, key, { decision, cost, answers: new Map() })
  }

  /**
   * The answer to an operation that an earlier denial of the same request decides; undefined if none does. The answer is
   * made once for each guard, as several guards of one limiter may answer differently. `cost` is undefined while it is
   * not known.
   */
  #deniedEarlier(call: Call, key: string, cost?: number): MaybePromise<Denied> | undefined {
    const denial = this.#operationsOf(call, key).denialFor(cost)
    if (!denial) return undefined
    call.decisions.push(denial.decision)
    return denial.answers.get(this) ?? this.#answer(call, key, denial)
  }

  /**
   * Has the guard answer an operation with a denial, and returns the answer. Denial and answer are kept for later
   * operations of the request, which get the same.
   */
  #answer(call: Call, key: string, denial: EarlierDenial): MaybePromise<Denied> {
    const denied = this.#steps.deny(call, call, key, denial.cost, denial.decision)
    denial.answers.set(this, denied)
    this.#operationsOf(call, key).denial = denial
    return denied
  }

  /**
   * Returns what is kept of a request's operations (fields of a GraphQL request, each of which is a call of its own) under this limiter
   * and key: the first denial, which denies the later ones too, and those that wait for an answer. All guards of the limiter share it.
   */
  #operationsOf(call: Call, key: string): Operations {
    const byLimiter = getOrMake(
      OPERATIONS,
      nest.identity(call),
      () => new Map<Limiter, Map<string, Operations>>(),
    )
    const byKey = getOrMake(byLimiter, this.limiter, () => new Map<string, Operations>())
    return getOrMake(byKey, key, () => new Operations())
  }
}

/**
 * Makes the function that a guard of several limits puts around its decisions (`ask`), so that a GraphQL request with many operations
 * asks no store once a limit has denied one. Operations of a request that are counted under the same keys (`parts`) are asked about by
 * `Operations.run`, at most 16 at once; after a denial the others get the same decision and answer, except that a denial for a cost
 * that never fits is not kept, and one for want of a permit decides only operations that need the same permits. What is kept has the
 * cost 0, as it holds for every cost. `byRequest` also names this guard among those that keep an answer to the denial.
 */
export function operationsOfSeveral(): AskAboutSeveral<Call, Call> {
  const byRequest = new WeakMap<object, Map<string, Operations>>()
  return (call, parts, ask, _res, permitParts) => {
    if (call.kind !== 'graphql') return ask()
    const byKeys = getOrMake(byRequest, nest.identity(call), () => new Map<string, Operations>())
    const keys = JSON.stringify(parts.map(({ limiter, key }) => [limiter.name, key]))
    const neededPermits = JSON.stringify(permitParts.map(({ semaphore, key }) => [semaphore.name, key]))
    const operations = getOrMake(byKeys, keys, () => new Operations())
    return operations.run(() => {
      const { denial } = operations
      const isForSamePermits = denial?.permits === undefined || denial.permits === neededPermits
      if (denial && isForSamePermits) {
        call.decisions.push(denial.decision)
        return denial.answers.get(byRequest)
      }
      return chain(ask(), (denied) => {
        const decision = denied && call.decisions.at(-1)!
        if (!decision || decision.reason === 'cost') return denied
        const permits = decision.reason === 'concurrency' ? neededPermits : undefined
        operations.denial = { decision, cost: 0, permits, answers: new Map([[byRequest, denied]]) }
        return denied
      })
    })
  }
}

const MOST_AT_ONCE = 16

/** The operations of one request that are counted under the same keys. */
class Operations {
  denial: EarlierDenial | undefined
  #asking = 0
  readonly #waiting: (() => void)[] = []
  /** Index of the first waiting operation. Removing each from the front of the list would be quadratic. */
  #next = 0

  /**
   * The earlier denial that also decides an operation of this cost; undefined if none does. A cost of 0 stands for one
   * that is not known yet. A denial for the reason 'cost', of a cost that never fits, decides only operations of at least
   * that cost.
   */
  denialFor(cost = 0): EarlierDenial | undefined {
    const { denial } = this
    return denial && (denial.decision.reason !== 'cost' || cost >= denial.cost) ? denial : undefined
  }

  /**
   * Calls `ask` and returns its result, at once or, while 16 operations of the request are being asked about, when one of
   * these is answered. So a store elsewhere is not asked about thousands of operations before its first denial. `ask`
   * must check `denialFor` itself, as a denial may have come while it waited.
   */
  run<T>(ask: () => MaybePromise<T>): MaybePromise<T> {
    if (this.#asking >= MOST_AT_ONCE) {
      const turn = new Promise<void>((resolve) => this.#waiting.push(resolve))
      return turn.then(() => this.run(ask))
    }
    this.#asking++
    let answer
    try {
      answer = ask()
    } catch (error) {
      this.#done()
      throw error
    }
    if (isPromise(answer)) return Promise.resolve(answer).finally(() => this.#done())
    this.#done()
    return answer
  }

  /**
   * Ends the asking about one operation, and starts the one that has waited longest, if any. Only one: when that is
   * answered, it starts the next, which is at once if a denial decides it. `#next` is the index of the first that waits.
   */
  #done(): void {
    this.#asking--
    if (this.#next === this.#waiting.length) return
    const start = this.#waiting[this.#next++]!
    if (this.#next === this.#waiting.length) this.#next = this.#waiting.length = 0
    start()
  }
}

const OPERATIONS = new WeakMap<object, Map<Limiter, Map<string, Operations>>>()
