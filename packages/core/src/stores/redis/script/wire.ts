import type { Policy } from '../../../algorithms/contract/policy.js'
import { type Answer, type Booking, type DatedCharge, REASONS } from '../../store.js'

import { Buffer } from 'node:buffer' // the global is a getter

/*
 * The packed argument and the packed reply of a script: numbers as little-endian doubles, which cost Redis and the client
 * less than texts and lose no digit. lua/README.md describes both.
 */

/** The numbers of the operations in scripts. */
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
  release: 11,
} as const

export interface ScriptRequest {
  readonly operation: keyof typeof OPERATIONS
  readonly policies: readonly Policy[]
  readonly cost?: number
  /** Number of equal calls, made one after the other; only for `consume`. Default 1. */
  readonly count?: number
  /** Longest wait of a booking, or duration of a block or hold, in microseconds; to cancel, the instant of the booking. */
  readonly span?: number
  /** To confirm or cancel, the token of the booking; to release, the charge. */
  readonly token?: Buffer
  /** The smallest limit seen for each policy, if one of them is below the limit of this call. */
  readonly slowest?: readonly number[] | undefined
}

const DOUBLE = 8
const FAILURE = '!'.charCodeAt(0)
/** In the first number of an answer. */
const HEALED = 1

const LONG = 2
const NUMBERS_OF_LONG = 6

/** `clock` is -1 for Redis's own; `nonce` becomes the version of what this call writes, and the epoch of what it begins. */
export function packRequest(request: ScriptRequest, clock: number, nonce: number): Buffer {
  const { operation, policies, cost = 0, count = 1, span = 0, token, slowest } = request
  const numbers = [cost, nonce]
  for (const { limit, capacity } of policies) numbers.push(limit, capacity)
  if (operation !== 'consume' || count > 1 || clock >= 0 || slowest) {
    numbers.push(OPERATIONS[operation], count, clock, span)
  }
  if (slowest) numbers.push(...slowest)
  const packed = Buffer.allocUnsafe(numbers.length * DOUBLE + (token?.length ?? 0))
  for (let i = 0; i < numbers.length; i++) packed.writeDoubleLE(numbers[i]!, i * DOUBLE)
  token?.copy(packed, numbers.length * DOUBLE)
  return packed
}

/** A booking in Redis, with what the script needs to confirm or cancel it. */
export interface RedisBooking extends Booking {
  isCancelled: boolean
  /** Epoch, version, and what the booking replaced. */
  readonly token: Buffer
}

/** The answers of `count` equal calls, in order. */
export function unpackAnswers(reply: Buffer, policies: readonly Policy[], count: number): readonly Answer[] {
  const answers: Answer[] = []
  let start = 0
  for (; start < reply.length; start += answerBytes(reply, start, policies)) {
    answers.push(answerAt(reply, start, policies, undefined))
  }
  // The script leaves out what follows a denial: the same again.
  while (answers.length < count) answers.push(answers.at(-1)!)
  return answers
}

/** The answer of a single call. */
export function unpackAnswer(reply: Buffer, { policies, cost = 0 }: ScriptRequest, key: string): Answer {
  const size = answerBytes(reply, 0, policies)
  if (reply.length === size) return answerAt(reply, 0, policies, undefined)
  const token = reply.subarray(size)
  const [decidedAt, at] = [reply.readDoubleLE(DOUBLE), reply.readDoubleLE(2 * DOUBLE)]
  const booking: RedisBooking = { key, at, cost, decidedAt, token, isCancelled: false }
  return answerAt(reply, 0, policies, booking)
}

function answerAt(
  reply: Buffer,
  start: number,
  policies: readonly Policy[],
  booking: Booking | undefined,
): Answer {
  const now = reply.readDoubleLE(start + DOUBLE)
  const isLong = isLongAt(reply, start)
  const from = start + (isLong ? 2 + NUMBERS_OF_LONG : 2) * DOUBLE
  const parts =
    policies.length > 1 ? partsAt(reply, from, policies.length, isLong ? undefined : now) : undefined
  if (isLong) {
    const reason = REASONS[reply.readDoubleLE(start + 3 * DOUBLE)]
    return {
      now,
      at: reply.readDoubleLE(start + 2 * DOUBLE),
      reason,
      binding: reply.readDoubleLE(start + 4 * DOUBLE),
      remaining: reply.readDoubleLE(start + 5 * DOUBLE),
      resetAt: reply.readDoubleLE(start + 6 * DOUBLE),
      parts,
      booking,
      ...(reason && { nextUnitAt: reply.readDoubleLE(start + 7 * DOUBLE) }),
    }
  }
  let [binding, remaining, resetAt] = [0, reply.readDoubleLE(from), reply.readDoubleLE(from + DOUBLE)]
  for (let i = 1; i < policies.length; i++) {
    if (parts![3 * i + 1]! < remaining) [binding, remaining] = [i, parts![3 * i + 1]!]
    resetAt = Math.max(resetAt, parts![3 * i + 2]!)
  }
  const answer = passed(now, binding, remaining, resetAt, parts)
  return booking ? { ...answer, booking } : answer
}

/** The answer to a call that passed at once. */
export function passed(
  now: number,
  binding: number,
  remaining: number,
  resetAt: number,
  parts: readonly number[] | undefined,
): Answer {
  return { now, at: now, reason: undefined, binding, remaining, resetAt, parts, booking: undefined }
}

/** Where the call passed at once, the earliest instant is `now` for every policy and is left out. */
function partsAt(reply: Buffer, from: number, policies: number, now: number | undefined): number[] {
  const parts: number[] = []
  for (let i = 0, at = from; i < policies; i++) {
    if (now === undefined) at += DOUBLE
    parts.push(
      now ?? reply.readDoubleLE(at - DOUBLE),
      reply.readDoubleLE(at),
      reply.readDoubleLE(at + DOUBLE),
    )
    at += 2 * DOUBLE
  }
  return parts
}

/**
 * The server's error where a key of a call with several failed, and undefined where it was answered. A call with a
 * single key fails as a whole instead.
 */
export function unpackFailure(reply: Buffer): string | undefined {
  return reply[0] === FAILURE ? reply.toString('utf8', 1) : undefined
}

/** Whether the script discarded unreadable state. */
export function hasHealed(reply: Buffer): boolean {
  return reply.length > DOUBLE && (reply.readDoubleLE(0) & HEALED) !== 0
}

export function unpackConfirmation(reply: Buffer): 'stands' | 'lost' | 'held' {
  const state = reply.readDoubleLE(0)
  return state === 0 ? 'stands' : REASONS[state] === 'held' ? 'held' : 'lost'
}

/** Whether the booking was undone: the reply holds 1 in place of the units that took effect. */
export function unpackCancellation(reply: Buffer): boolean {
  return unpackEffect(reply) === 1
}

/** The units of a correction that took effect; 0 for those without a reply. */
export function unpackEffect(reply: Buffer): number {
  return reply.length > 2 * DOUBLE ? reply.readDoubleLE(2 * DOUBLE) : 0
}

/** The charge whose units are released. */
export function packCharge({ at, cost, decidedAt }: DatedCharge): Buffer {
  const packed = Buffer.allocUnsafe(3 * DOUBLE)
  packed.writeDoubleLE(at, 0)
  packed.writeDoubleLE(cost, DOUBLE)
  packed.writeDoubleLE(decidedAt, 2 * DOUBLE)
  return packed
}

function isLongAt(reply: Buffer, start: number): boolean {
  return (reply.readDoubleLE(start) & LONG) !== 0
}

function answerBytes(reply: Buffer, start: number, policies: readonly Policy[]): number {
  const { length } = policies
  const numbers = isLongAt(reply, start)
    ? 2 + NUMBERS_OF_LONG + (length > 1 ? 3 * length : 0)
    : 2 + 2 * length
  return numbers * DOUBLE
}

/**
 * The reply to a call of a script with several keys, read key by key: an instant, then remaining and resetAt for each plain
 * call and policy, and a mark for each key that has a reply of its own.
 */
export class PackedReply {
  readonly #numbers: DataView
  readonly #now: number
  #at = DOUBLE

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.#numbers = new DataView(buffer, byteOffset, byteLength)
    this.#now = this.#numbers.getFloat64(0, true)
  }

  /** Whether the calls of the next key were plain. Otherwise passes over the mark. */
  isPlain(): boolean {
    if (this.#numbers.getFloat64(this.#at, true) >= 0) return true
    this.#at += DOUBLE
    return false
  }

  /** The answer to the next plain call. */
  next(policies: number): Answer {
    const now = this.#now
    let remaining = this.#number()
    let resetAt = this.#number()
    if (policies === 1) return passed(now, 0, remaining, resetAt, undefined)
    const parts = [now, remaining, resetAt]
    let binding = 0
    for (let i = 1; i < policies; i++) {
      const [left, reset] = [this.#number(), this.#number()]
      parts.push(now, left, reset)
      if (left < remaining) {
        binding = i
        remaining = left
      }
      if (reset > resetAt) resetAt = reset
    }
    return passed(now, binding, remaining, resetAt, parts)
  }

  #number(): number {
    const number = this.#numbers.getFloat64(this.#at, true)
    this.#at += DOUBLE
    return number
  }
}
