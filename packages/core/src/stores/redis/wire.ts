import type { Policy } from '../../policy.js'
import type { Answer, Booking, Reason } from '../store.js'

/*
 * What travels between store and script: one packed argument and one packed reply, numbers as little-endian doubles.
 * This costs Redis and the client less than texts, and no digit is lost. lua/README.md describes both.
 */

/** Operations by the numbers that lua/engine.lua gives them. */
export const OPERATIONS = {
  consume: 1,
  peek: 2,
  book: 3,
  refund: 4,
  charge: 5,
  block: 6,
  hold: 7,
  reset: 8,
  confirm: 9,
  cancel: 10,
} as const

export interface Request {
  readonly operation: keyof typeof OPERATIONS
  readonly policies: readonly Policy[]
  readonly cost?: number
  /** Longest wait of a booking, or length of a block or hold, in microseconds. */
  readonly span?: number
  /** What a booking's confirmation or cancellation brings along. */
  readonly token?: Buffer
  /** Smallest limits known for each policy, where one is below the limit of this call. */
  readonly slowest?: readonly number[] | undefined
}

const REASONS: readonly (Reason | undefined)[] = [undefined, 'limit', 'cost', 'blocked', 'held']
const DOUBLE = 8
const NUMBERS_IN_ANSWER = 7

/** `clock` is -1 for Redis's own; `nonce` becomes the version of what this call writes, and the epoch of what it begins. */
export function packRequest(request: Request, clock: number, nonce: number): Buffer {
  const { operation, policies, cost = 0, span = 0, token, slowest } = request
  const numbers = [OPERATIONS[operation], cost, span, clock, nonce]
  for (const { limit, capacity } of policies) numbers.push(limit, capacity)
  if (slowest) numbers.push(...slowest)
  const packed = Buffer.allocUnsafe(numbers.length * DOUBLE + (token?.length ?? 0))
  for (let i = 0; i < numbers.length; i++) packed.writeDoubleLE(numbers[i]!, i * DOUBLE)
  token?.copy(packed, numbers.length * DOUBLE)
  return packed
}

/** A place booked in Redis: what the script wants to see again. */
export interface RedisBooking extends Booking {
  readonly policies: readonly Policy[]
  /** Epoch, version, and what the booking replaced. */
  readonly token: Buffer
}

export function unpackAnswer(reply: Buffer, policies: readonly Policy[], key: string): Answer {
  const number = (i: number): number => reply.readDoubleLE(i * DOUBLE)
  const partNumbers = policies.length > 1 ? 3 * policies.length : 0
  const parts = partNumbers
    ? Array.from({ length: partNumbers }, (_, i) => number(NUMBERS_IN_ANSWER + i))
    : undefined
  const token = reply.subarray((NUMBERS_IN_ANSWER + partNumbers) * DOUBLE)
  const booking: RedisBooking | undefined = token.length ? { key, at: number(2), policies, token } : undefined
  return {
    now: number(1),
    at: number(2),
    reason: REASONS[number(3)],
    binding: number(4),
    remaining: number(5),
    resetAt: number(6),
    parts,
    booking,
  }
}

/** Whether the script met state that it could not read, and dropped it. */
export function hasHealed(reply: Buffer): boolean {
  return reply.length >= NUMBERS_IN_ANSWER * DOUBLE && reply.readDoubleLE(0) === 1
}

export function unpackConfirmation(reply: Buffer): 'stands' | 'lost' | 'held' {
  const state = reply.readDoubleLE(0)
  return state === 0 ? 'stands' : REASONS[state] === 'held' ? 'held' : 'lost'
}

/** A cancellation that came too late is answered with a single number. */
export function unpackCancellation(reply: Buffer): boolean {
  return reply.length > DOUBLE
}
