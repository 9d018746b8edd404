import { checkCost } from './cost.js'
import { SluiceError, type StoreError, type StoreFailure } from './errors.js'
import type { Policy } from './policy.js'
import { type Answer, type DatedCharge, isDenied, type Keyspace, type Reason } from './stores/store.js'

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

/** The turn that an acquired place came to. */
export interface Turn {
  /** The instant as of which the place is described. */
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

/** The answer to one call. */
export class Decision {
  /** Whether the call may go on. In shadow mode always true. */
  readonly allowed: boolean
  /** The most that `remaining` can be under the binding policy. */
  readonly limit: number
  /** Units that could be spent now, rounded down. */
  readonly remaining: number
  /** Milliseconds until this cost would pass: 0 = now, Infinity = never. */
  readonly retryAfterMs: number
  /** Milliseconds until `remaining` is full again. */
  readonly resetAfterMs: number
  /** Name of the binding policy: the one with least left, or when denied the one to wait longest for. */
  readonly policy: string
  /** Why it was denied: no room now, a cost that never fits, a ban, or a pause. */
  readonly reason: Reason | undefined
  /** Why the store did not decide; undefined where it did. */
  readonly degraded: StoreFailure | undefined
  /** Shadow mode only: whether it would have been denied. */
  readonly wouldDeny: boolean | undefined
  /** `acquire`: milliseconds it waited for its turn; 0 otherwise. */
  readonly waitMs: number
  /**
   * `acquire`: whole milliseconds from its turn to when it resolved, because the process was busy or the store's answer
   * late; 0 otherwise.
   */
  readonly lateMs: number
  /** Name of the limiter that decided. */
  readonly limiter: string
  /** Whom the call was counted for: what `block`, `hold`, `refund` and `reset` take. */
  readonly key: string
  readonly #source: DecisionSource
  readonly #answer: Answer
  readonly #charged: string | undefined
  readonly #cost: number
  #settled = false

  /** For limiters. `charged` is the stored key, undefined where nothing was charged; `turn` where nobody waited for it. */
  constructor(
    source: DecisionSource,
    answer: Answer,
    key: string,
    charged: string | undefined,
    cost: number,
    turn?: Turn,
  ) {
    const denied = isDenied(answer)
    const binding = source.policies[answer.binding]!
    const now = turn ? turn.at : answer.now
    this.allowed = !denied || !source.enforce
    this.limit = binding.capacity
    this.remaining = answer.remaining
    this.retryAfterMs = this.allowed ? 0 : wholeMs(answer.at - now)
    this.resetAfterMs = wholeMs(answer.resetAt - now)
    this.policy = binding.name
    this.reason = answer.reason
    this.degraded = answer.degraded?.why
    this.wouldDeny = source.enforce ? undefined : denied
    this.waitMs = turn ? turn.waitMs : 0
    this.lateMs = turn ? turn.lateMs : 0
    this.limiter = source.limiter
    this.key = key
    this.#source = source
    this.#answer = answer
    this.#charged = denied || (answer.degraded && !answer.degraded.by) ? undefined : charged
    this.#cost = cost
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
    if (key === undefined || difference === 0) return 0
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

  get #charge(): DatedCharge {
    const { now, at, chargedAt } = this.#answer
    return chargedAt === undefined
      ? { at, cost: this.#cost, decidedAt: now }
      : { at: chargedAt, cost: this.#cost, decidedAt: chargedAt }
  }
}

function wholeMs(us: number): number {
  return Math.max(0, Math.ceil(us / 1000))
}
