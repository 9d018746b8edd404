import type { Policy } from '../../policy.js'
import type { Answer, Booking, Reason } from '../store.js'

/*
 * What travels between store and script: one packed argument and one packed reply, numbers as little-endian doubles.
 * This costs Redis and the client less than texts, and no digit is lost. lua/README.md describes both.
 */

/** Operations by the numbers that scripts know them by. */
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
  /** Equal calls that are made one after the other, of `consume` alone. Default 1. */
  readonly count?: number
  /** Longest wait of a booking, or length of a block or hold, in microseconds. */
  readonly span?: number
  /** What a booking's confirmation or cancellation brings along. */
  readonly token?: Buffer
  /** Smallest limits known for each policy, where one is below the limit of this call. */
  readonly slowest?: readonly number[] | undefined
}

export const REASONS: readonly (Reason | undefined)[] = [undefined, 'limit', 'cost', 'blocked', 'held']
const DOUBLE = 8
const NUMBERS_IN_ANSWER = 7
const FAILURE = '!'.charCodeAt(0)

/** `clock` is -1 for Redis's own; `nonce` becomes the version of what this call writes, and the epoch of what it begins. */
export function packRequest(request: Request, clock: number, nonce: number): Buffer {
  const { operation, policies, cost = 0, count = 1, span = 0, token, slowest } = request
  const numbers = [OPERATIONS[operation], cost, span, clock, nonce, count]
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

/** The answers of `count` equal calls, in order. */
export function unpackAnswers(
  reply: Buffer,
  policies: readonly Policy[],
  key: string,
  count: number,
): readonly Answer[] {
  if (count === 1) return [unpackAnswer(reply, policies, key)]
  const bytes = answerBytes(policies)
  const answers: Answer[] = []
  for (let start = 0; start < reply.length; start += bytes) {
    answers.push(unpackAnswer(reply.subarray(start, start + bytes), policies, key))
  }
  // The script leaves out what follows a denial: the same again.
  while (answers.length < count) answers.push(answers.at(-1)!)
  return answers
}

export function unpackAnswer(reply: Buffer, policies: readonly Policy[], key: string): Answer {
  const number = (i: number): number => reply.readDoubleLE(i * DOUBLE)
  const partNumbers = policies.length > 1 ? 3 * policies.length : 0
  const parts = partNumbers
    ? Array.from({ length: partNumbers }, (_, i) => number(NUMBERS_IN_ANSWER + i))
    : undefined
  const token = reply.subarray(answerBytes(policies))
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

/**
 * The server's error where a key of a call with several failed, and undefined where it was answered. A call with a
 * single key fails as a whole instead.
 */
export function unpackFailure(reply: Buffer): string | undefined {
  return reply[0] === FAILURE ? reply.toString('utf8', 1) : undefined
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

function answerBytes(policies: readonly Policy[]): number {
  return (NUMBERS_IN_ANSWER + (policies.length > 1 ? 3 * policies.length : 0)) * DOUBLE
}
