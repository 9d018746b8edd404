import type { Policy } from '../algorithms/contract/policy.js'
import { chargeOf } from '../stores/giving-back.js'
import { type Answer, type Reason, usedOf } from '../stores/store.js'
import { wholeMs } from '../values/clock.js'
import { checkCost } from '../values/cost.js'
import { SluiceError, type StoreError, type StoreFailure } from '../values/errors.js'
import { storedKey } from '../values/key.js'
import type { PolicySet } from './policy-set.js'
import type { Reservation } from './reservation.js'

/** How a call waited for its turn, and what it has reserved. */
export interface Waited {
  /** The instant as of which the decision describes the key. */
  readonly turnAt: number
  readonly waitMs: number
  readonly lateMs: number
  readonly reservation?: Reservation | undefined
}

/** The answer to a call that has waited, or has reserved. */
export interface WaitedAnswer extends Answer {
  readonly waited: Waited
}

/**
 * The answer to one call. Only `allowed`, `remaining`, `policy` and `reason` are properties of its own; the others are
 * computed when they are read. To copy a decision or to compare it with another, use `decision.toJSON()`.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m' })] })
 * const decision = await limiter.consume('user:42')
 * if (!decision.allowed) console.log(`${decision.reason}, retry in ${decision.retryAfterMs} ms`)
 */
export type Decision = AllowedDecision | DeniedDecision

/**
 * The call may go on. Its cost was charged, unless it came from `peek`, would have been denied but for shadow mode (`reason` is
 * why), or was let pass by `onStoreError: 'allow'`.
 */
export interface AllowedDecision extends LimiterDecision {
  readonly allowed: true
}

/** The call may not go on, and nothing was charged. */
export interface DeniedDecision extends LimiterDecision {
  readonly allowed: false
  readonly reason: DenialReason
}

/**
 * Why a call was denied: 'limit', it does not fit now; 'cost', it never fits; 'blocked', a ban; 'held', a pause; 'degraded',
 * the store did not decide, and `onStoreError` denies the call; 'reservations', as many of the key are open as
 * may be; 'concurrency', a semaphore beside its keys has no permit free.
 */
export type DenialReason = Reason | 'degraded' | 'concurrency'

/** Under a registered symbol, because adapters of other copies of this package read it too. */
const POLICIES = Symbol.for('sluice.policies')

/** The policies that decided, in the order of `decision.policies`. For adapters. */
export function policiesOf(decision: Decision): readonly Policy[] {
  return decision[POLICIES]
}

/**
 * Whether a value is a decision, also one of another copy of this package.
 */
export function isDecision(value: unknown): value is Decision {
  return typeof value === 'object' && value !== null && POLICIES in value
}

/** Under a registered symbol, because metrics of other copies of this package read it too. */
export const ANSWER = Symbol.for('sluice.answer')

/** The cost of the call until it is settled; undefined for a decision that cannot be: of `peek`, or after a giving back. */
type OpenCharge = number | 'settled' | undefined

type DecisionSource = Omit<PolicySet, 'given' | 'shapes' | 'sets' | 'booked'>

/** The class of both kinds of decisions. */
export class LimiterDecision {
  /** Whether the call may go on. In shadow mode always true. */
  readonly allowed: boolean
  /** Units that could be spent now, rounded down. */
  readonly remaining: number
  /** Name of the binding policy: the one with least left, or when denied the one to wait longest for. Empty on an exempt key. */
  readonly policy: string
  /** Why the call was denied, or in shadow mode would have been; undefined if it fits. */
  readonly reason: DenialReason | undefined
  readonly #source: DecisionSource
  readonly #answer: Answer & Partial<WaitedAnswer>
  readonly #key: string
  #charge: OpenCharge

  /**
   * Makes the decision of a store's answer about the caller's key. `source` has the policies and whether they are enforced: in
   * shadow mode every call is allowed, and `reason` says why it would have been denied. `charge` is the cost that `settle` may
   * correct; undefined for a decision that charged nothing. If the store did not decide, the failure mode's denial has the reason
   * 'degraded'.
   */
  constructor(source: DecisionSource, answer: Answer | WaitedAnswer, key: string, charge: OpenCharge) {
    const { reason, degraded } = answer
    this.reason = reason ?? (degraded?.allowed === false ? 'degraded' : undefined)
    this.allowed = !source.enforce || this.reason === undefined
    this.remaining = answer.remaining
    this.policy = source.policies[answer.binding]!.name
    this.#source = source
    this.#answer = answer
    this.#key = key
    this.#charge = charge
  }

  /** The most that `remaining` can be under the binding policy; Infinity on an exempt key. */
  get limit(): number {
    return this.#source.policies[this.#answer.binding]!.capacity
  }

  /** Milliseconds until this cost would pass: 0 = now, Infinity = never. 0 in shadow mode, where it passes now. */
  get retryAfterMs(): number {
    return this.allowed ? 0 : wholeMs(this.#answer.at - this.#now)
  }

  /** Milliseconds until `remaining` is full again. */
  get resetAfterMs(): number {
    return wholeMs(this.#answer.resetAt - this.#now)
  }

  /** Why the store did not decide; undefined if it did. */
  get degraded(): StoreFailure | undefined {
    return this.#answer.degraded?.why
  }

  /** Set where an override exempts the key: nothing was counted, `policies` is empty, and `limit` and `remaining` are Infinity. */
  get exempt(): true | undefined {
    return this.#source.exempt
  }

  /** Shadow mode only: whether it would have been denied. */
  get wouldDeny(): boolean | undefined {
    return this.#source.enforce ? undefined : this.reason !== undefined
  }

  /** Whether the call was charged: not if it was denied or only read, nor if another part of its `consumeAll` was denied. */
  get charged(): boolean {
    return !!this.#charge && chargeOf(this.#answer, 0) !== undefined
  }

  /** `acquire`: milliseconds it waited for its turn; 0 otherwise. */
  get waitMs(): number {
    return this.#answer.waited?.waitMs ?? 0
  }

  /**
   * `acquire`: whole milliseconds between its turn and its result, because the process was busy or the store's answer was
   * late; 0 otherwise.
   */
  get lateMs(): number {
    return this.#answer.waited?.lateMs ?? 0
  }

  /** Of an allowed `reserve`: its reservation. */
  get reservation(): Reservation | undefined {
    return this.#answer.waited?.reservation
  }

  /** Name of the limiter that decided. */
  get limiter(): string {
    return this.#source.limiter
  }

  /** The key that the call was counted for, as `block`, `hold`, `refund` and `reset` take it. */
  get key(): string {
    return this.#key
  }

  /** @internal */
  get [POLICIES](): readonly Policy[] {
    return this.#source.exempt ? [] : this.#source.policies
  }

  /** @internal */
  get [ANSWER](): Answer {
    return this.#answer
  }

  /**
   * How the key stands under every policy, in declared order. With several policies `parts`, of the answer, has three numbers for
   * each: the earliest instant at which the cost passes, what remains, and when it is full again; with one policy it is the
   * decision's own. An allowed call waits for no policy. An answer says what is `used` where it is not the rest of the capacity.
   */
  get policies(): readonly PolicyState[] {
    const { parts, held } = this.#answer
    return this[POLICIES].map((policy, i) => ({
      name: policy.name,
      limit: policy.capacity,
      windowMs: policy.windowMs,
      remaining: parts ? parts[3 * i + 1]! : this.remaining,
      used: usedOf(this.#answer, policy, i),
      held: held?.[i] ?? 0,
      retryAfterMs: !parts || this.allowed ? this.retryAfterMs : wholeMs(parts[3 * i]! - this.#now),
      resetAfterMs: parts ? wholeMs(parts[3 * i + 2]! - this.#now) : this.resetAfterMs,
      rule: this.reason === 'blocked' ? 'block' : this.#source.rule,
    }))
  }

  /**
   * Corrects the cost to the real one. A higher cost charges the difference now and is never refused. A lower cost gives
   * back units of this decision's own charge, as far as they still count: units that have left the window, or drained, are
   * not given back again. Does nothing on a decision that charged nothing.
   *
   * Resolves to the units that took effect, below 0 if units were given back. It may be a fraction, and of several policies
   * it is the least.
   *
   * A decision can be settled once; that of a `reserve` as its reservation can. After a failure whose `sent` is false, it was not carried out and may be repeated.
   * @throws {SluiceError} ALREADY_SETTLED the second time; {InputError} INVALID_COST; {StoreError} when the store fails.
   * @example
   * import { createLimiter, gcra } from '@sluice/core'
   * const limiter = createLimiter({ policies: [gcra({ limit: 100_000, window: '1m' })] })
   * const decision = await limiter.consume('user:42', { cost: 1000 })
   * await decision.settle(640) // gives back 360 units
   */
  async settle(realCost: number): Promise<number> {
    checkCost(realCost, 'real cost')
    const { reservation } = this
    if (reservation) return (await reservation.settle(realCost)).units
    const charge = this.#charge
    if (charge === 'settled') throw new SluiceError('ALREADY_SETTLED', 'a decision can be settled once')
    this.#charge = 'settled'
    if (charge === undefined) return 0
    try {
      return await this.#correct(charge, realCost)
    } catch (error) {
      if ((error as Partial<StoreError>).sent === false) this.#charge = charge
      throw error
    }
  }

  /**
   * Corrects the charge of `cost` units to `realCost` in the state that decided: the store's, or in an outage that of the failure
   * mode (`degraded.by`). Returns the units that took effect: above 0 if they were charged, below 0 if they were given back, and 0
   * if the call had charged nothing.
   */
  async #correct(cost: number, realCost: number): Promise<number> {
    const missing = realCost - cost
    const charge = chargeOf(this.#answer, cost)
    if (missing === 0 || !charge) return 0
    const { degraded } = this.#answer
    const keyspace = degraded?.by ?? this.#source.keyspace
    const key = storedKey(this.#key)
    const { nearing } = this.#source
    if (missing > 0 && nearing) return nearing.charge(keyspace, this.#key, missing, degraded && 'local')
    if (missing > 0) return keyspace.correct({ kind: 'charge', key, cost: missing })
    const givenBack = await keyspace.correct({ kind: 'release', key, charge, units: -missing })
    return givenBack === 0 ? 0 : -givenBack // never -0
  }

  /** All fields, as a plain object: what `JSON.stringify` writes. */
  toJSON(): DecisionRecord {
    return Object.fromEntries(FIELDS.map((field) => [field, this[field]])) as DecisionRecord
  }

  /** The output of Node's `util.inspect` and `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](
    depth: number,
    options: object,
    inspect: (value: object, options: object) => string,
  ): string {
    return depth < 0 ? '[Decision]' : `Decision ${inspect(this.toJSON(), options)}`
  }

  /**
   * The instant as of which the decision describes the key, and from which `retryAfterMs` and `resetAfterMs` count. An `acquire`
   * that was allowed describes the key at the turn that it has booked (`turnAt`), any other call at the instant of the answer.
   */
  get #now(): number {
    return this.#answer.waited?.turnAt ?? this.#answer.now
  }
}

const FIELDS = [
  'allowed',
  'limit',
  'remaining',
  'retryAfterMs',
  'resetAfterMs',
  'policy',
  'reason',
  'degraded',
  'exempt',
  'wouldDeny',
  'charged',
  'waitMs',
  'lateMs',
  'limiter',
  'key',
  'policies',
] as const

/** The plain object that `decision.toJSON()` returns. */
export type DecisionRecord = Pick<LimiterDecision, (typeof FIELDS)[number]>

/** Makes decisions, whose `allowed` and `reason` fit together. For limiters. */
export const Decision = LimiterDecision as new (
  ...parts: ConstructorParameters<typeof LimiterDecision>
) => Decision

/** The state of one policy of the list. Times are whole milliseconds, rounded up. */
export interface PolicyState {
  readonly name: string
  /** The most that `remaining` can be. */
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /**
   * Units that count now, rounded up, also while a block or hold leaves nothing `remaining`; above `limit` where more was charged
   * than fits. Where places are booked ahead, the units that count at the last of them. 0 where nothing was asked that knows.
   */
  readonly used: number
  /** Of these, the units that open reservations hold, rounded up, as a peek and a denial say; otherwise 0. */
  readonly held: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  /**
   * What has decided: the limiter's own policies, those of the call, an override of the key, or a block of it; each wins over those
   * before.
   */
  readonly rule: 'default' | 'plan' | 'override' | 'block'
}
