import { expected, InputError } from '../values/errors.js'
import { MOST_PARTS } from '../stores/together.js'
import type { Decision } from './decision.js'
import type { Limiter } from './limiter.js'
import type { ReserveOptions } from './reserving-options.js'
import { isPermitPart, type PermitPart, permitsFirst } from './permits-first.js'
import { WholeDecision } from './whole-decision.js'

/** One key of a call that reserves on several, with the options of `reserve`. */
export interface ReservePart extends Omit<ReserveOptions, 'maxWait' | 'signal'> {
  readonly limiter: Limiter
  readonly key: string
}

/**
 * Reserves units of several keys: all of them admit the call, or none is charged. Parts may be permits too, which come first. All
 * keys are tried, then all are reserved; what was reserved of a call that lost a race in between is released, which a gcra, a token
 * bucket or a leaky bucket gives back as far as it has not drained meanwhile. Each decision has its `reservation`, and `settle` of
 * the whole settles them.
 * @throws {InputError} INVALID_OPTION, INVALID_KEY, INVALID_COST, INVALID_DURATION.
 */
export async function reserveAll(parts: readonly (ReservePart | PermitPart)[]): Promise<WholeDecision> {
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > MOST_PARTS) {
    const bound = `a call on several keys takes a list of 1 to ${MOST_PARTS} parts`
    throw expected(InputError, 'INVALID_OPTION', bound, parts)
  }
  const keys = parts.filter((part) => !isPermitPart(part)) as readonly ReservePart[]
  const permits = parts.filter(isPermitPart)
  return permitsFirst(
    permits,
    async () => reserveKeys(keys),
    (...whole) => new WholeDecision(...whole),
  )
}

/** Reserves units of each key, or of none. */
async function reserveKeys(parts: readonly ReservePart[]): Promise<readonly Decision[]> {
  const tried = await Promise.all(
    parts.map(({ limiter, key, cost, policies }) => {
      return limiter.peek(key, { ...(cost !== undefined && { cost }), ...(policies && { policies }) })
    }),
  )
  if (tried.some(({ allowed }) => !allowed)) return tried
  const asked = parts.map(({ limiter, key, ...options }) => limiter.reserve(key, options))
  const reserved = await Promise.allSettled(asked)
  const decisions = reserved.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  if (decisions.length === parts.length && decisions.every(({ allowed }) => allowed)) return decisions
  await Promise.allSettled(decisions.map(async ({ reservation }) => reservation?.release()))
  await Promise.all(asked) // rejects as the first that failed
  return decisions.map((decision, i) => (decision.allowed ? tried[i]! : decision))
}
