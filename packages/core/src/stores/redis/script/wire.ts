import { Buffer } from 'node:buffer' // the global is a getter
import type { Policy } from '../../../algorithms/contract/policy.js'
import type { ReservationEffect } from '../../reservations.js'
import { type Answer, type Booking, type ChargeCounts, type DatedCharge, REASONS } from '../../store.js'

/*
 * The packed argument of a script and its packed reply. Numbers are little-endian doubles, which cost Redis and the client less
 * than texts and lose no digit. lua/README.md describes both.
 */

/** The numbers of the operations in scripts. */
export const OPERATIONS = {
  consume: 1,
  peek: 2,
  try: 3,
  book: 4,
  commit: 5,
  refund: 6,
  charge: 7,
  block: 8,
  hold: 9,
  reset: 10,
  confirm: 11,
  cancel: 12,
  release: 13,
  reserve: 14,
  change: 15,
} as const

/** The time in an argument by which a script reads Redis's own clock. */
export const REDIS_TIME = -1

export interface ScriptRequest {
  readonly operation: keyof typeof OPERATIONS
  readonly policies: readonly Policy[]
  readonly cost?: number
  /** Number of equal calls, made one after the other; only for `consume`. Default 1. */
  readonly count?: number
  /**
   * Longest wait of a booking, or duration of a block or hold, in microseconds; to cancel, the instant of the booking; to get what
   * counts after a charge, 1 and what steps before it have charged.
   */
  readonly span?: number
  /** To confirm or cancel, the token of the booking; to release, the charge. */
  readonly token?: Buffer
  /** To reserve: id, ttl, what stays charged at the end, and how many may be open. */
  readonly reserving?: readonly number[]
  readonly counted?: ChargeCounts | undefined
  /** The smallest limit seen for each policy, if one of them is below the limit of this call. */
  readonly slowest?: readonly number[] | undefined
  /** The instant around which calendars bring their boundaries; default that of the clock, or of this process. */
  readonly around?: number | undefined
}

/**
 * Returns the numbers that a request brings of each policy: limit and capacity, and of a calendar its boundaries around the instant
 * of the call, which this process guesses if Redis's own clock decides (`clock` is -1, else microseconds).
 */
function numbersOf({ policies, around }: ScriptRequest, clock: number): readonly number[] {
  const instant = around ?? (clock < 0 ? Date.now() * 1000 : clock)
  return policies.flatMap(({ limit, capacity, calendar }) =>
    calendar ? [limit, capacity, ...calendar.around(instant)] : [limit, capacity],
  )
}

/**
 * Packs a request as the script's argument: doubles, then the token. Nearly all are a single `consume` on Redis's clock (`clock`
 * is -1, else microseconds), with no more than cost, nonce, limits and capacities. Others add the operation, its numbers and any
 * smaller limits seen. The script stores the random `nonce` with what it writes, so that a booking notices later changes.
 */
export function packRequest(request: ScriptRequest, clock: number, nonce: number): Buffer {
  const { operation, cost = 0, count = 1, span = 0, token, slowest } = request
  const numbers = [cost, nonce, ...numbersOf(request, clock)]
  if (operation !== 'consume' || count > 1 || clock >= 0 || slowest) {
    numbers.push(OPERATIONS[operation], count, clock, span, ...(request.reserving ?? []))
  }
  if (slowest) numbers.push(...slowest)
  return packed(numbers, token)
}

/** A part of a call on several keys, as its script decides it. */
export interface ScriptPart {
  /** The number of its list of policies in the script, from 1. */
  readonly list: number
  readonly request: ScriptRequest
  /** Whether its denial denies the whole. */
  readonly enforce: boolean
}

/**
 * Packs the argument for a whole: a call on several keys that charges all of its parts, one for each key, or none. It begins with
 * their number. That is below 0, and more numbers follow, if a part is not enforced, if `clock` is not -1 (Redis's own) but
 * microseconds, or if a smaller limit was seen for some state, which must then be kept longer. `nonce` makes a random number for
 * each part, by which its write is known again.
 */
export function packWhole(parts: readonly ScriptPart[], clock: number, nonce: () => number): Buffer {
  const hasSlowest = parts.some(({ request }) => request.slowest)
  const isPlain = clock < 0 && !hasSlowest && parts.every(({ enforce }) => enforce)
  const numbers = isPlain ? [parts.length] : [-parts.length, clock, hasSlowest ? 1 : 0]
  for (const { list, request } of parts) {
    numbers.push(list, request.cost!, nonce(), ...numbersOf(request, clock))
  }
  if (isPlain) return packed(numbers)
  for (const { request, enforce } of parts) {
    numbers.push(enforce ? 1 : 0, ...(request.slowest ?? request.policies.map(({ limit }) => limit)))
  }
  return packed(numbers)
}

/** Packs the charge whose units are to be released: its instant, its cost, and when it was decided; instants in microseconds. */
export function packCharge({ at, cost, decidedAt }: DatedCharge): Buffer {
  return packed([at, cost, decidedAt])
}

/** Returns bytes with these numbers as little-endian doubles of 8 bytes, and `rest` behind them. */
export function packed(numbers: readonly number[], rest?: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * DOUBLE + (rest?.length ?? 0))
  for (let i = 0; i < numbers.length; i++) bytes.writeDoubleLE(numbers[i]!, i * DOUBLE)
  rest?.copy(bytes, numbers.length * DOUBLE)
  return bytes
}

/** A booking in Redis, with what the script needs to confirm or cancel it. */
export interface RedisBooking extends Booking {
  /** Epoch, version, and what the booking replaced. */
  readonly token: Buffer
}

/**
 * Reads the answers of `count` equal calls, which the script made one after the other, out of its reply. After a denial the rest
 * would be denied too, so the script leaves their answers out, and the denial is repeated here.
 */
export function unpackAnswers(reply: Buffer, policies: readonly Policy[], count: number): readonly Answer[] {
  const reader = new NumberReader(reply)
  const answers: Answer[] = []
  while (reader.at < reply.length) answers.push(reader.answer(policies.length))
  while (answers.length < count) answers.push(answers.at(-1)!)
  return answers
}

/**
 * Reads the answer to a single call out of the script's reply. If bytes are left behind its numbers, they are the token of a
 * booking that the call made (a charge at a later instant, or one that can be undone), by which the script knows it again.
 */
export function unpackAnswer(reply: Buffer, { policies, cost = 0 }: ScriptRequest, key: string): Answer {
  const reader = new NumberReader(reply)
  const answer = reader.answer(policies.length)
  if (reader.at === reply.length) return answer
  const { at, now: decidedAt } = answer
  const token = reply.subarray(reader.at)
  const booking: RedisBooking = { key, at, cost, decidedAt, token }
  return { ...answer, booking }
}

/** Returns the server's error for a key of several: the text after the `!` of its reply. Undefined where it was answered. */
export function unpackFailure(reply: Buffer): string | undefined {
  return reply[0] === FAILURE ? reply.toString('utf8', 1) : undefined
}

/** Whether the script found state that no call can have written, and discarded it: a bit in the first number of its reply. */
export function hasHealed(reply: Buffer): boolean {
  return reply.length > DOUBLE && (reply.readDoubleLE(0) & HEALED) !== 0
}

/** Returns how a booking stands: `confirm` replies 0 if its charge is in the key's state, or else a reason, of which held is one. */
export function unpackConfirmation(reply: Buffer): 'stands' | 'lost' | 'held' {
  const state = reply.readDoubleLE(0)
  return state === 0 ? 'stands' : REASONS[state] === 'held' ? 'held' : 'lost'
}

/** Returns what became of a change of a reservation: from the third number on, the units that took effect, its outcome, its end. */
export function unpackReservation(reply: Buffer): ReservationEffect {
  const [effect, outcome, end] = [2, 3, 4].map((i) => reply.readDoubleLE(i * DOUBLE)) as [
    number,
    number,
    number,
  ]
  return { state: OUTCOMES[outcome]!, effect, end }
}

/**
 * Returns the units that took effect, which are the third number of a reply: 0 if there is none, as after a reset; 1 if a cancel
 * restored the state. The numbers behind it say what counts after a charge; `counted` is called with them and the instant.
 */
export function unpackEffect(reply: Buffer, { counted }: ScriptRequest): number {
  const [, now = 0, effect = 0, ...counts] = new NumberReader(reply).take(reply.length / DOUBLE)
  counted?.([now, ...counts])
  return effect
}

const DOUBLE = 8
const FAILURE = '!'.charCodeAt(0)
/** In the first number of an answer. */
const HEALED = 1
const LONG = 2
const HELD = 4
const FULL = 8
/** What became of a change of a reservation, by number. */
const OUTCOMES = ['open', 'settled', 'late'] as const

/**
 * Reads the numbers of a reply, one after the other. That to a call of a script with several keys is `isPacked`, and read key by
 * key: an instant, then remaining and resetAt for each plain call and policy, and a mark for each key with a reply of its own.
 */
export class NumberReader {
  readonly #numbers: DataView
  /** Of a packed reply, in microseconds: it holds for all plain calls in it. */
  readonly #now: number
  /** Bytes that were read. */
  at = 0

  constructor({ buffer, byteOffset, byteLength }: Uint8Array, isPacked = false) {
    this.#numbers = new DataView(buffer, byteOffset, byteLength)
    this.#now = isPacked ? this.next() : 0
  }

  /** Reads the next number of 8 bytes, and moves on behind it. */
  next(): number {
    const number = this.#numbers.getFloat64(this.at, true)
    this.at += DOUBLE
    return number
  }

  /** Reads the next `count` numbers. `Array.from` would take ten times as long. */
  take(count: number): number[] {
    const numbers: number[] = []
    for (let i = 0; i < count; i++) numbers.push(this.next())
    return numbers
  }

  /** Passes the next number if it is a mark (below 0), which says that the key has its own reply. Returns whether it was one. */
  passMark(): boolean {
    const isMark = this.#numbers.getFloat64(this.at, true) < 0
    if (isMark) this.at += DOUBLE
    return isMark
  }

  /**
   * Reads the answer to one call under this number of policies. Its first number has flags. LONG: it is not the short answer to a
   * call that passed at once with a cost (`passed`), but a long one, which has every field (`#long`). HELD: it ends with what open
   * reservations hold. FULL: the key has as many open ones as it may; that is the reason unless there is another than 'limit'.
   */
  answer(policies: number): Answer {
    const flags = this.next()
    const now = this.next()
    const answer = flags & LONG ? this.#long(policies, now) : this.passed(policies, now)
    if ((flags & HELD) === 0) return answer
    const nextEnd = this.next()
    const held = this.take(policies)
    const known = { held, nextEnd, ...answer }
    const isFull = flags & FULL && (answer.reason ?? 'limit') === 'limit'
    return isFull ? { ...known, reason: 'reservations', at: Math.max(answer.at, nextEnd) } : known
  }

  /**
   * Reads the rest of an answer whose flags and time (`now`) were read. A long answer is one that is not simply allowed: it says why
   * and until when (`at`). `binding` is the place of the policy that decides; with several policies, `parts` has three numbers for
   * each: the earliest instant, the units that remain, and the instant at which it is full again. `used` are the units counted.
   */
  #long(policies: number, now: number): Answer {
    const at = this.next()
    const reason = REASONS[this.next()]
    const [binding, remaining, resetAt] = [this.next(), this.next(), this.next()]
    const [nextUnitAt, blockedUntil] = [this.next(), this.next()]
    const parts = policies > 1 ? this.take(3 * policies) : undefined
    const used = this.take(policies)
    const answer = { now, at, reason, binding, remaining, resetAt, parts, used, booking: undefined }
    if (!reason) return answer
    return { nextUnitAt, blockedUntil: blockedUntil > now ? blockedUntil : undefined, ...answer }
  }

  /**
   * Reads the answer to a call that passed at once, at `now` in microseconds, by default that of a packed reply: remaining and
   * resetAt of each policy. The one with the smallest remaining is binding. `parts` has three numbers a policy, of which the
   * earliest instant, `now`, is not sent.
   */
  passed(policies: number, now = this.#now): Answer {
    let remaining = this.next()
    let resetAt = this.next()
    let binding = 0
    const parts = policies > 1 ? [now, remaining, resetAt] : undefined
    for (let i = 1; i < policies; i++) {
      const [left, reset] = [this.next(), this.next()]
      parts!.push(now, left, reset)
      if (left < remaining) {
        binding = i
        remaining = left
      }
      if (reset > resetAt) resetAt = reset
    }
    return { now, at: now, reason: undefined, binding, remaining, resetAt, parts, booking: undefined }
  }
}
