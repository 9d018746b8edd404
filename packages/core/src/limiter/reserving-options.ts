import { checkCost } from '../values/cost.js'
import type { Duration } from '../values/duration.js'
import { expectedButGot, InputError, PolicyError } from '../values/errors.js'
import * as option from '../values/options.js'
import { type AcquireOptions, costOf } from './limiter-options.js'

export interface ReserveOptions extends AcquireOptions {
  /** How long until the store gives the units back, 1 ms to 30 days; a number is in milliseconds. */
  readonly ttl: Duration
  /**
   * Units that stay charged at the end, at most the cost.
   * @default 0
   */
  readonly atEnd?: number
  /**
   * The longest wait for units, up to 1 day; a number is in milliseconds. While units are reserved, the call asks again each
   * second, and at the next end.
   * @default 0
   */
  readonly maxWait?: Duration
}

/** Options of a part of a call on several keys, beside its limiter and key. */
export const RESERVED_PART = {
  policies: option.unchecked(),
  cost: option.unchecked(),
  ttl: option.required(option.duration('1ms', '30d')),
  atEnd: option.unchecked(),
} satisfies option.DeclarationOf<Omit<ReserveOptions, 'maxWait' | 'signal'>>
const RESERVE = {
  ...RESERVED_PART,
  signal: option.unchecked(),
  maxWait: option.duration(0, '1d', 0),
} satisfies option.DeclarationOf<ReserveOptions>

/** The options of a call that reserves, checked. Durations are in milliseconds. */
export type ReserveTerms = ReturnType<typeof reserveOf>

/**
 * The options of a call that reserves, checked and with their defaults. Durations are in milliseconds. `declaration` lists the
 * options that the call may have.
 * @throws {InputError} INVALID_COST, INVALID_DURATION, INVALID_OPTION.
 */
export function reserveOf(options = {} as ReserveOptions, declaration: option.Declaration = RESERVE) {
  const cost = costOf(options, declaration)
  const atEnd = checkCost(options.atEnd ?? 0, 'atEnd')
  if (cost === 0)
    throw expectedButGot(InputError, 'INVALID_COST', 'cost of a reservation must be at least 1', cost)
  if (atEnd > cost)
    throw expectedButGot(InputError, 'INVALID_COST', `atEnd must be at most the cost, ${cost}`, atEnd)
  const about = { what: 'reserve', error: InputError }
  const ttl = option.readOption(RESERVE.ttl, options.ttl, 'ttl', about)
  return { cost, atEnd, ttl, maxWait: option.readOption(RESERVE.maxWait, options.maxWait, 'maxWait', about) }
}

/** @throws {PolicyError} INVALID_OPTION for a limiter that was made without `reservations`. */
export function requireReserving({ reserves }: { readonly reserves: boolean }): void {
  if (reserves) return
  throw new PolicyError('INVALID_OPTION', 'a limiter reserves only if it was made with reservations: {}')
}
