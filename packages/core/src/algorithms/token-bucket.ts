import { expectedButGot, PolicyError } from '../values/errors.js'
import { type DeclarationOf, oneOf } from '../values/options.js'
import { type Algorithm, capacity, factory, Policy, type PolicyFactory } from './contract/policy.js'
import type { State } from './contract/state.js'
import { DEBT, debt, FASTEST, SINCE } from './debt/debt.js'
import { DEBT_POLICY, type DebtOptions, debtPolicy } from './debt/debt-policy.js'

/*
 * A bucket of tokens that starts full and is refilled (RFC 2697 meters traffic with it). Greedy refill adds tokens continuously
 * at limit/window: the missing tokens are the debt of debt/debt.ts divided by the window. Interval refill adds `limit` tokens
 * together at each multiple of the window since the Unix epoch; its missing tokens are counted in units.
 */

/** Interval refill: the cell of the missing tokens, where greedy refill keeps the debt. The other cells are those of the debt. */
const MISSING = DEBT

/** An expiry, in microseconds, beyond which refills cannot be counted exactly. */
const NEVER = 1e21

export interface TokenBucketOptions extends DebtOptions {
  /**
   * Tokens that the bucket holds.
   * @default limit
   */
  readonly capacity?: number
  /**
   * `'greedy'` refills continuously, `'interval'` adds `limit` tokens once a window.
   * @default 'greedy'
   */
  readonly refill?: 'greedy' | 'interval'
}

const TOKEN_BUCKET = {
  ...DEBT_POLICY,
  capacity,
  refill: oneOf(['greedy', 'interval'], 'greedy'),
} satisfies DeclarationOf<TokenBucketOptions>

/**
 * A bucket of tokens that starts full; each unit takes one out. Greedy refill adds tokens continuously: any span of length s
 * admits at most capacity + limit * s / window. Interval refill adds `limit` tokens at each multiple of the window since 1970: a
 * span admits at most capacity, and `limit` more for each such refill inside it.
 * @throws {PolicyError} when a number is not positive and whole, for `slots` with interval refill, or (greedy) if
 * capacity x window passes 2^52, with the window in microseconds, or in milliseconds if it is longer than an hour.
 * @example
 * import { createLimiter, tokenBucket } from '@sluice/core'
 * // 10 a second, and up to 50 at once after a pause.
 * const limiter = createLimiter({ policies: [tokenBucket({ limit: 10, window: '1s', capacity: 50 })] })
 * const { allowed } = await limiter.consume('user:42', { cost: 20 })
 */
export const tokenBucket: PolicyFactory<TokenBucketOptions> = /* @__PURE__ */ factory(
  'tokenBucket',
  TOKEN_BUCKET,
  (settings) => {
    const { capacity, refill, slots } = settings
    if (refill === 'greedy') return debtPolicy(greedy, settings, 'capacity', capacity)
    if (slots !== undefined) {
      throw expectedButGot(PolicyError, 'INVALID_OPTION', "slots are for refill: 'greedy'", slots)
    }
    return new Policy(interval, settings, { capacity: { name: 'capacity', value: capacity } })
  },
)

const greedy: Algorithm = { name: 'token-bucket', ...debt }

const interval: Algorithm = {
  name: 'token-bucket-interval',
  ring: false,
  drains: true,
  cells: () => 3,

  /**
   * Token bucket refilled once a window: returns `from` if the bucket has `cost` tokens then, otherwise the instant of the refill
   * that brings the last of the tokens that are `short`; Infinity for a cost above the capacity. Instants are in microseconds.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.capacity) return Infinity
    const short = missingAt(state, policy, from) + cost - policy.capacity
    if (short <= 0) return from
    return refilledAt(policy, from, short)
  },

  /**
   * Token bucket refilled once a window: takes `cost` tokens out at the instant `at`, or puts tokens back if the cost is
   * negative. The state holds the tokens that are MISSING from a full bucket. Nothing is denied here: the bucket may owe tokens, as
   * the real cost of a call may become known only after the call. At most twice the capacity is missing then, so that the wait is
   * bounded; a debt that is larger, because the capacity was lowered since, stays. Returns the tokens that took effect.
   */
  admit(state, policy, at, cost) {
    const before = refill(state, policy, at)
    const most = Math.max(before, 2 * policy.capacity)
    const missing = Math.max(0, Math.min(most, before + cost))
    state.set(MISSING, missing)
    return Math.abs(missing - before)
  },

  /**
   * Token bucket refilled once a window: fills `view` for the instant `now` with the tokens in the bucket and the instant of the
   * refill that makes it full, `now` if it is. Refills are counted from SINCE, the last write: it lies ahead of `now` after a
   * booking.
   */
  view(state, policy, now, view) {
    const missing = missingAt(state, policy, now)
    view.remaining = policy.capacity - missing
    view.resetAt = missing === 0 ? now : refilledAt(policy, Math.max(now, state.get(SINCE)), missing)
  },

  /**
   * Token bucket refilled once a window: takes `cost` tokens at `now` if the bucket has them, and fills `view` with the tokens
   * left and the instant of the refill that makes it full. Returns `now` if they were taken, otherwise the instant of the refill
   * that brings the last of the tokens that are `short`; Infinity for a cost above the capacity. The state holds the tokens
   * MISSING from a full bucket.
   */
  take(state, policy, now, cost, view) {
    const before = missingAt(state, policy, now)
    const short = before + cost - policy.capacity
    const missing = short <= 0 ? before + cost : before
    view.remaining = policy.capacity - missing
    view.resetAt = missing === 0 ? now : refilledAt(policy, now, missing)
    if (short > 0) return cost > policy.capacity ? Infinity : refilledAt(policy, now, short)
    refillTo(state, policy, now)
    state.set(MISSING, missing)
    return now
  },

  /**
   * Token bucket refilled once a window: puts up to `units` tokens of one charge back, and returns how many took effect. Refills
   * since the charge may have returned its tokens already; each counts with FASTEST, the largest limit that has refilled this
   * key, so `left` tokens of the charge are certainly still missing.
   */
  release(state, policy, now, charge, units) {
    const missing = refill(state, policy, now)
    const refills = (refillBefore(policy, now) - refillBefore(policy, charge.at)) / policy.window
    const left = charge.cost - refills * state.get(FASTEST)
    const given = Math.max(0, Math.min(units, left, missing))
    state.set(MISSING, missing - given)
    return given
  },

  /**
   * Prepares the state of a key whose bucket is full again for its next charge. FASTEST, the largest limit that has refilled it,
   * becomes this policy's: larger limits of before concern no token that is still missing.
   */
  renew(state, policy) {
    state.set(FASTEST, policy.limit)
  },

  /**
   * Whether calls can have left this state; false means that it is corrupt. Its instant SINCE must not be after `latest`, the
   * last write or booking. Stores keep a state until its bucket is full again, so the refills from SINCE until the state expires
   * must suffice for the tokens MISSING. Their number is at most the windows of that span plus one, and each adds at most FASTEST
   * tokens, the largest limit that has refilled the bucket. If the expiry is so late that refills cannot be counted exactly (from
   * NEVER on), any number of missing tokens is accepted.
   */
  isValid(state, { window }, latest, expiresAt) {
    const since = state.get(SINCE)
    const mostMissing = ((expiresAt - since + window) / window) * state.get(FASTEST)
    return since <= latest && (state.get(MISSING) <= mostMissing || expiresAt >= NEVER)
  },

  bounds: {
    // A span may begin just before a refill.
    most: ({ limit, capacity, window }, span) => capacity + limit * Math.ceil((span - 1) / window),
    // After the last call a bucket may wait for its next refill for up to a window.
    reach: (policy) => Math.ceil(debt.bounds.scale(policy)) + policy.window,
    scale: (policy) => debt.bounds.scale(policy),
  },

  /** Units that are booked after a refill are served before the next, so that both use the same tokens. */
  leasing: {
    book: (policy) => policy,
    end: (policy, now) => refillBefore(policy, now) + policy.window,
  },
}

/**
 * Records that all refills until the instant `at` were made, and returns how many tokens are missing from a full bucket then. The
 * caller writes that number to MISSING, as it changes it first.
 */
function refill(state: State, policy: Policy, at: number): number {
  const missing = missingAt(state, policy, at)
  refillTo(state, policy, at)
  return missing
}

/**
 * Moves SINCE, up to which refills are recorded, to the instant `at`, but never back. Raises FASTEST, the largest limit that has
 * refilled the bucket, to this policy's limit if that is larger: `release` and `isValid` reckon with that many tokens in each refill,
 * because calls under other limits may share the key's state.
 */
function refillTo(state: State, policy: Policy, at: number): void {
  state.set(SINCE, Math.max(at, state.get(SINCE)))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
}

/** The instant, in microseconds, of the refill after `from` that adds the last of `tokens`, with `limit` tokens in each. */
function refilledAt(policy: Policy, from: number, tokens: number): number {
  return refillBefore(policy, from) + Math.ceil(tokens / policy.limit) * policy.window
}

/**
 * Returns the tokens that are missing from a full bucket at an instant: those recorded in MISSING, less `limit` for each refill
 * since the instant SINCE, at which they were recorded. A refill comes at each multiple of the window since 1970.
 */
function missingAt(state: State, policy: Policy, instant: number): number {
  const passed = refillBefore(policy, instant) - refillBefore(policy, state.get(SINCE))
  const refilled = (Math.max(0, passed) / policy.window) * policy.limit
  return Math.max(0, state.get(MISSING) - refilled)
}

/** The instant, in microseconds, of the last refill up to `instant`: one comes at each multiple of the window since 1970. */
function refillBefore(policy: Policy, instant: number): number {
  return Math.floor(instant / policy.window) * policy.window
}
