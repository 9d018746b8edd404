import {
  type Keyspace,
  memoryStore,
  type Policy,
  type Store,
  StoreError,
  type StoreErrorCode,
} from '@sluice/core'
import {
  type Answer,
  type Ask,
  type Correction,
  type DenialCacheBounds,
  guard,
  type Penalty,
  type Report,
  type ReservationChange,
  type ReservationEffect,
  type Reservations,
  type ReservationSettings,
} from '@sluice/core/store'

/** A decision or a correction of a keyspace, or one of its other operations. */
type Operation = Ask | Correction['kind'] | 'confirm' | 'cancel' | 'reserve' | ReservationChange['kind']

/**
 * A store elsewhere, to which things happen: it keeps state in memory and answers later, fails with a code, or stands
 * still until it is woken and then carries out what it was sent, as a stopped Redis does.
 */
export class RemoteStore implements Store {
  /** Where outages are said to be. */
  endpoint?: string
  /** Operations that arrived, in order. */
  readonly arrived: Operation[] = []
  /** The `maxWait` of each booking that arrived, in order. */
  readonly maxWaits: number[] = []
  readonly guard = guard
  readonly denialCache?: DenialCacheBounds
  readonly #memory: Store
  #fault: Error | undefined
  #asleep: (() => void)[] | undefined
  #replies: (() => void)[] | undefined

  /** `reserves`: whether it keeps reservations. */
  constructor(
    clock: () => number,
    denialCache?: DenialCacheBounds,
    readonly reserves = false,
  ) {
    this.#memory = memoryStore({ clock })
    if (denialCache) this.denialCache = denialCache
  }

  /** Every call is answered with an error, of a code like 'STORE_OOM', until the next `recover`. */
  fail(error: StoreErrorCode | Error): void {
    this.#fault = typeof error === 'string' ? new StoreError(error, 'as the test says') : error
  }

  /** From now on calls arrive and are not carried out until `recover`, as at a process that is stopped. */
  stop(): void {
    this.#asleep = []
  }

  /** Calls are carried out, and their replies are on their way until the next `recover`. */
  holdReplies(): void {
    this.#replies = []
  }

  /** Ends every fault: calls that waited are carried out, and replies that were held arrive. */
  recover(): void {
    const waiting = [...(this.#asleep ?? []), ...(this.#replies ?? [])]
    this.#fault = this.#asleep = this.#replies = undefined
    for (const goOn of waiting) goOn()
  }

  /** How many calls of an operation have arrived. */
  count(operation: Operation): number {
    return this.arrived.filter((other) => other === operation).length
  }

  /** Lets replies that were held arrive one by one, the last one first, as they may over several connections. */
  async replyLastFirst(): Promise<void> {
    const replies = this.#replies ?? []
    this.#replies = undefined
    for (const reply of replies.toReversed()) {
      reply()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /**
   * The keyspace of the memory store behind this one, whose operations arrive here first: each is noted, and may fail or wait.
   * Optional members are left out, so that every call gets a promise.
   */
  keyspace(
    name: string,
    policies: readonly Policy[],
    report: Report,
    ...terms: readonly [penalty?: Penalty, reservations?: ReservationSettings]
  ): Keyspace {
    const state = this.#memory.keyspace(name, policies, report, ...terms)
    const own = this.reserves ? state.reservations : undefined
    const reservations: Reservations | undefined = own && {
      reserve: (call) => this.#arrive('reserve', () => own.reserve(call)) as Promise<Answer>,
      change: (change) => this.#arrive(change.kind, () => own.change(change)) as Promise<ReservationEffect>,
    }
    return new Proxy(state, {
      get: (_, name: keyof Keyspace) => {
        if (name === 'policies' || name === 'penalty' || name === 'answersAtOnce') return state[name]
        if (name === 'reservations') return reservations
        if (isOptional(name)) return undefined // a promise for each call is what is tested here
        const act = name === 'decide' ? deciderOf(state) : (state[name] as Act).bind(state)
        return (...args: unknown[]) => {
          const operation = operationOf(name, args[0])
          if (operation === 'book') this.maxWaits.push(args[3] as number)
          return this.#arrive(operation, () => act(...args))
        }
      },
    })
  }

  /** The instant on the store's clock, in microseconds. */
  now(): number {
    return this.#memory.now()
  }

  /** Closes the memory store, so that later calls fail. */
  close(): void {
    void this.#memory.close()
  }

  /** The error of a store that is closed; undefined while it is open. */
  #closed(): Error | undefined {
    try {
      this.#memory.now()
      return undefined
    } catch (error) {
      return error as Error
    }
  }

  /** Notes a call, and carries it out unless a fault prevents that: it fails, or waits until `recover`, or only its reply does. */
  #arrive(operation: Operation, act: () => unknown): Promise<unknown> {
    this.arrived.push(operation)
    if (this.#fault) return Promise.reject(this.#closed() ?? this.#fault)
    if (this.#asleep) return new Promise((resolve) => this.#asleep!.push(() => resolve(act())))
    if (!this.#replies) return Promise.resolve().then(act)
    const reply = act()
    return new Promise((resolve) => this.#replies!.push(() => resolve(reply)))
  }
}

/**
 * The method `decide` of a store whose denials are remembered by its callers: a denial also names the instant at which one unit more
 * than remains would pass.
 */
function deciderOf(state: Keyspace): Act {
  return (...args) => {
    const [ask, key, cost, maxWait] = args as [Ask, string, number, number]
    const answer = state.decide(ask, key, cost, maxWait) as Answer
    if (answer.reason === undefined) return answer
    const { at } = state.decide('peek', key, answer.remaining + 1, 0) as Answer
    return { ...answer, nextUnitAt: at }
  }
}

type Act = (...args: unknown[]) => unknown

/** The members that a keyspace may leave out. */
type Optional = 'consume' | 'fits' | 'known' | 'together' | 'reservations'

/** Whether a keyspace may lack this member, so that calls go by `decide` instead. */
export function isOptional(name: keyof Keyspace): name is Optional {
  return ['consume', 'fits', 'known', 'together', 'reservations'].includes(name)
}

/** The operation that a call of a keyspace's method is: of `decide` its first argument, of `correct` the kind of the correction. */
function operationOf(
  name: Exclude<keyof Keyspace, 'policies' | 'penalty' | 'answersAtOnce' | Optional>,
  first: unknown,
): Operation {
  if (name === 'decide') return first as Ask
  return name === 'correct' ? (first as Correction).kind : name
}
