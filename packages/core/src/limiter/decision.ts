import { checkCost } from '../values/cost.js'
import { SluiceError, type StoreError, type StoreFailure } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'
import { type Answer, type DatedCharge, isDenied, type Keyspace, type Reason } from '../stores/store.js'

/** How one policy of the list stands. Times are whole milliseconds, rounded up. */
export interface PolicyState {
  readonly name: string
  /** The most that `remaining` can be. */
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}

/** What decided, and the way to correct it. */
export interface DecisionSource {
  readonly limiter: string
  readonly policies: readonly Policy[]
  /** false in shadow mode. */
  readonly enforce: boolean
  /** What decided, unless the store did not. */
  readonly keyspace: Keyspace
}

/** How an acquired place was waited for. */
export interface WaitTimes {
  /** The instant as of which the decision describes the key. */
  readonly at: number
  readonly waitMs: number
  readonly lateMs: number
}

/** Under a registered symbol, as adapters of another copy of this package read it too. */
const POLICIES = Symbol.for('sluice.policies')

/** The policies that decided, in the order of `decision.policies`. For adapters. */
export function policiesOf(decision: Decision): readonly Policy[] {
  return decision[POLICIES]
}

/**
 * The answer to one call. Only `allowed`, `remaining`, `policy` and `reason` are properties of its own; the others are
 * computed when they are read. To copy a decision or to compare it with another, take `decision.toJSON()`.
 */
export class Decision {
  /** Whether the call may go on. In shadow mode always true. */
  readonly allowed: boolean
  /** Units that could be spent now, rounded down. */
  readonly remaining: number
  /** Name of the binding policy: the one with least left, or when denied the one to wait longest for. */
  readonly policy: string
  /** Why it was denied: no room now, a cost that never fits, a ban, or a pause. */
  readonly reason: Reason | undefined
  readonly #source: DecisionSource
  readonly #answer: Answer
  readonly #key: string
  readonly #charged: string | undefined
  readonly #cost: number
  readonly #wait: WaitTimes | undefined
  #settled = false

  /** For limiters. `charged` is the stored key, undefined where nothing was charged; `wait` only from `acquire`. */
  constructor(
    source: DecisionSource,
    answer: Answer,
    key: string,
    charged: string | undefined,
    cost: number,
    wait?: WaitTimes,
  ) {
    this.allowed = !source.enforce || !isDenied(answer)
    this.remaining = answer.remaining
    this.policy = source.policies[answer.binding]!.name
    this.reason = answer.reason
    this.#source = source
    this.#answer = answer
    this.#key = key
    this.#charged = charged
    this.#cost = cost
    this.#wait = wait
  }

  /** The most that `remaining` can be under the binding policy. */
  get limit(): number {
    return this.#source.policies[this.#answer.binding]!.capacity
  }

  /** Milliseconds until this cost would pass: 0 = now, Infinity = never. */
  get retryAfterMs(): number {
    return this.allowed ? 0 : wholeMs(this.#answer.at - this.#now)
  }

  /** Milliseconds until `remaining` is full again. */
  get resetAfterMs(): number {
    return wholeMs(this.#answer.resetAt - this.#now)
  }

  /** Why the store did not decide; undefined where it did. */
  get degraded(): StoreFailure | undefined {
    return this.#answer.degraded?.why
  }

  /** Shadow mode only: whether it would have been denied. */
  get wouldDeny(): boolean | undefined {
    return this.#source.enforce ? undefined : isDenied(this.#answer)
  }

  /** `acquire`: milliseconds it waited for its turn; 0 otherwise. */
  get waitMs(): number {
    return this.#wait?.waitMs ?? 0
  }

  /**
   * `acquire`: whole milliseconds from its turn to when it resolved, because the process was busy or the store's answer
   * late; 0 otherwise.
   */
  get lateMs(): number {
    return this.#wait?.lateMs ?? 0
  }

  /** Name of the limiter that decided. */
  get limiter(): string {
    return this.#source.limiter
  }

  /** Whom the call was counted for: what `block`, `hold`, `refund` and `reset` take. */
  get key(): string {
    return this.#key
  }

  /** @internal */
  get [POLICIES](): readonly Policy[] {
    return this.#source.policies
  }

  /** Every policy in declared order; made when asked for. */
  get policies(): readonly PolicyState[] {
    const { now, parts } = this.#answer
    return this.#source.policies.map((policy, i) => ({
      name: policy.name,
      limit: policy.capacity,
      windowMs: policy.windowMs,
      remaining: parts ? parts[3 * i + 1]! : this.remaining,
      retryAfterMs: !parts || this.allowed ? this.retryAfterMs : wholeMs(parts[3 * i]! - now),
      resetAfterMs: parts ? wholeMs(parts[3 * i + 2]! - now) : this.resetAfterMs,
    }))
  }

  /**
   * Corrects the cost to what it turned out to be. More is charged now and never refused. Less gives back the units of
   * this decision's own charge, as far as they still count: what has left the window, or drained, is not given back again.
   * Resolves to the difference that took effect, in units, below 0 where units were given back; it may be a fraction, and
   * of several policies it is the least. Does nothing on a decision that charged nothing.
   *
   * A decision can be settled once. Only after a failure whose `sent` is false, so that it was surely not carried out, may
   * `settle` be called again.
   * @throws {SluiceError} ALREADY_SETTLED the second time; {InputError} INVALID_COST; {StoreError} when the store fails.
   */
  async settle(realCost: number): Promise<number> {
    checkCost(realCost, 'real cost')
    if (this.#settled) throw new SluiceError('ALREADY_SETTLED', 'a decision can be settled once')
    this.#settled = true
    const key = this.#charged
    const difference = realCost - this.#cost
    if (key === undefined || difference === 0 || !this.#isCharged) return 0
    const keyspace = this.#answer.degraded?.by ?? this.#source.keyspace
    try {
      if (difference > 0) return await keyspace.correct({ kind: 'charge', key, cost: difference })
      const given = await keyspace.correct({ kind: 'release', key, charge: this.#charge, units: -difference })
      return given === 0 ? 0 : -given
    } catch (error) {
      this.#settled = (error as Partial<StoreError>).sent !== false
      throw error
    }
  }

  /** This decision as it reads once `units` of what it charged were given back. For adapters. */
  afterGivingBack(units: number): Decision {
    const { policies } = this.#source
    const { parts, remaining, binding } = this.#answer
    const left = policies.map(({ capacity }, i) =>
      Math.min(capacity, Math.floor((parts ? parts[3 * i + 1]! : remaining) + units)),
    )
    const least = Math.min(...left)
    const answer = {
      ...this.#answer,
      remaining: least,
      binding: parts ? left.indexOf(least) : binding,
      parts: parts?.map((part, i) => (i % 3 === 1 ? left[(i - 1) / 3]! : part)),
    }
    return new Decision(this.#source, answer, this.key, undefined, this.#cost)
  }

  /** All that it says, as a plain object: what `JSON.stringify` writes. */
  toJSON(): DecisionRecord {
    const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, reason, degraded, wouldDeny } =
      this
    const { waitMs, lateMs, limiter, key, policies } = this
    return {
      allowed,
      limit,
      remaining,
      retryAfterMs,
      resetAfterMs,
      policy,
      reason,
      degraded,
      wouldDeny,
      waitMs,
      lateMs,
      limiter,
      key,
      policies,
    }
  }

  /** What Node's `util.inspect`, and so `console.log`, shows. */
  [Symbol.for('nodejs.util.inspect.custom')](
    depth: number,
    options: object,
    inspect: (value: object, options: object) => string,
  ): string {
    return depth < 0 ? '[Decision]' : `Decision ${inspect(this.toJSON(), options)}`
  }

  /** The instant as of which it describes the key. */
  get #now(): number {
    return this.#wait ? this.#wait.at : this.#answer.now
  }

  /** Whether a keyspace holds a charge that belongs to it. */
  get #isCharged(): boolean {
    const { degraded } = this.#answer
    return !isDenied(this.#answer) && !(degraded && !degraded.by)
  }

  get #charge(): DatedCharge {
    const { now, at, chargedAt } = this.#answer
    return chargedAt === undefined
      ? { at, cost: this.#cost, decidedAt: now }
      : { at: chargedAt, cost: this.#cost, decidedAt: chargedAt }
  }
}

/** What `decision.toJSON()` returns. */
export type DecisionRecord = Pick<
  Decision,
  | 'allowed'
  | 'limit'
  | 'remaining'
  | 'retryAfterMs'
  | 'resetAfterMs'
  | 'policy'
  | 'reason'
  | 'degraded'
  | 'wouldDeny'
  | 'waitMs'
  | 'lateMs'
  | 'limiter'
  | 'key'
  | 'policies'
>

function wholeMs(us: number): number {
  return Math.max(0, Math.ceil(us / 1000))
}
