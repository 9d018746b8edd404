import { REASONS } from '@sluice/core/internal'
import type { Answer, Ask, Correction, ReservationChange } from '@sluice/core/store'
import { MalformedFrame } from './frames.js'

/**
 * The version of what processes say to each other. It is part of the socket's path, so processes of two versions never
 * meet; while both run, each version admits its limit. Whatever changes a kind, a number or its meaning raises it.
 */
export const PROTOCOL = 9

/** The kinds of frames that a client sends. */
export const REQUEST = {
  /** protocol, the server's epoch that this process knew before or 0; the store's name. Answered by `hello`. */
  hello: 1,
  /** The tag becomes the number of the list in the text. Not answered. */
  open: 2,
  /** Of the list of the tag on the key in the text: cost, maxWait. Answered by `answer`. */
  consume: 3,
  peek: 4,
  book: 5,
  /** The booking's number. Answered by `effect`: 0 stands, 1 lost, 2 held. */
  confirm: 6,
  /** The booking's number, at, cost, decidedAt. Answered by `effect`: 1 where it is as if never booked. */
  cancel: 7,
  /**
   * cost, and 1 to get what counts after a charge. The following are answered by `effect`: the units that took effect, and behind
   * them what counts, if that was asked for.
   */
  refund: 8,
  charge: 9,
  /** at, cost, decidedAt of the charge, units. */
  release: 10,
  /** Microseconds, 1 for the block of a penalty and otherwise 0. */
  block: 11,
  /** Microseconds. */
  hold: 12,
  reset: 13,
  /** The semaphore's number, limit, lease in microseconds, tickets. The tag is the step's number. Answered by `states`. */
  permits: 14,
  /** As `consume`. */
  try: 15,
  commit: 16,
  /** Of each part the list's number, cost, and whether it is enforced; the keys in JSON. Answered by `answers`. */
  together: 17,
  /** The request in JSON. Answered by `records`. */
  records: 18,
  /** cost, id, ttl and what stays at the end. Answered by `answer`. */
  reserve: 19,
  /** id, decidedAt, end, then the units of a settling, or 0, the ttl and, if it changes, what stays at the end. Answered by `changed`. */
  change: 20,
} as const

/** The kinds of frames that a server sends. All but `notice` and `granted` answer the oldest call that has no answer. */
export const REPLY = {
  /** protocol, epoch. */
  hello: 1,
  /**
   * now, at, remaining, resetAt, then of a denial nextUnitAt and otherwise the booking's number or 0, then of the denial of a
   * blocked key blockedUntil and otherwise 0, parts, used, then of a key with reservations `held`, the next end and how many policies
   * there are. The tag is that of `answerTag`.
   */
  answer: 2,
  effect: 3,
  /** The number of each ticket's state. */
  states: 4,
  /** The limiter's name, a line break, the notice in JSON. */
  notice: 5,
  /** The semaphore's number, the ticket. */
  granted: 6,
  /** Of each part the tag and the numbers of an `answer`, behind how many these are. */
  answers: 7,
  /** What has changed, in JSON. */
  records: 8,
  /** The number of the state, the units that took effect, the end. */
  changed: 9,
  /** In place of any other: why the call was not carried out, as text. */
  refused: 10,
} as const

export const ASKS: Readonly<Record<Ask, number>> = {
  consume: REQUEST.consume,
  peek: REQUEST.peek,
  try: REQUEST.try,
  book: REQUEST.book,
  commit: REQUEST.commit,
}

/** The calls that a keyspace decides, by the kind of their request. */
export const ASK_BY_KIND = new Map(Object.entries(ASKS).map(([ask, kind]) => [kind, ask as Ask]))

export const STANDINGS = ['stands', 'lost', 'held'] as const

/** What became of a change of a reservation, by number. */
export const CHANGE_STATES = ['open', 'settled', 'late'] as const

/** What the tag of an answer says: why the call is denied, the place of the policy that decides, and which numbers there are. */
interface AnswerTag {
  readonly reason: Answer['reason']
  readonly binding: number
  readonly hasUsed: boolean
  readonly hasHeld: boolean
}

/** The bits of an answer's tag: the number of its reason, whether it has `used`, the place of the binding policy, whether it has `held`. */
const [REASON_BITS, USED_BIT, BINDING_BITS, HELD_BIT] = [0b111, 1 << 3, 0xff << 4, 1 << 12]

/** The tag of an answer: one number, in whose bits its reason and its form are packed. */
export function answerTag({ reason, binding, hasUsed, hasHeld }: AnswerTag): number {
  return REASONS.indexOf(reason) | (hasUsed ? USED_BIT : 0) | (binding << 4) | (hasHeld ? HELD_BIT : 0)
}

/** Reads the tag of an answer: the reason of a denial, the place of the binding policy, and which optional numbers there are. */
export function readAnswerTag(tag: number): AnswerTag {
  return {
    reason: REASONS[tag & REASON_BITS],
    binding: (tag & BINDING_BITS) >> 4,
    hasUsed: (tag & USED_BIT) !== 0,
    hasHeld: (tag & HELD_BIT) !== 0,
  }
}

/**
 * Returns the numbers by which a change of a reservation is sent: its id, when it was decided and its end; then to settle it the units,
 * or to extend it 0, the time to extend it by and, if that changes, the units that stay charged at its end.
 */
export function numbersOfChange(change: ReservationChange): readonly number[] {
  const reserved = [change.id, change.decidedAt, change.end]
  if (change.kind === 'settle') return [...reserved, change.units]
  return [...reserved, 0, change.ttl, ...(change.atEnd === undefined ? [] : [change.atEnd])]
}

/**
 * Reads the change of a reservation from its numbers: the id, when it was decided and its end, then one number, the units, to settle
 * it; or two or three, of which the second is the time to extend it by and the third the units that stay charged at its end.
 * @throws {MalformedFrame} for other numbers.
 */
export function changeOf(key: string, numbers: readonly number[]): ReservationChange {
  const [id, decidedAt, end] = numbers.slice(0, 3).map((number) => wholeNumber(number)) as [
    number,
    number,
    number,
  ]
  const reserved = { key, id, decidedAt, end }
  const isSettling = numbers.length === 4
  if (isSettling) return { ...reserved, kind: 'settle', units: wholeNumber(numbers[3], LARGEST_COST) }
  const atEnd = numbers.length > 5 ? wholeNumber(numbers[5], LARGEST_COST) : undefined
  return { ...reserved, kind: 'extend', ttl: wholeNumber(numbers[4]), atEnd }
}

/**
 * The numbers of a correction (a change to a key's units or state), as they are sent with the request of its kind. Durations are
 * microseconds. `correctionOf` reads them back in this order.
 */
export function numbersOf(correction: Correction): readonly number[] {
  switch (correction.kind) {
    case 'refund':
    case 'charge':
      return [correction.cost, 'counted' in correction ? 1 : 0]
    case 'release':
      return [correction.charge.at, correction.charge.cost, correction.charge.decidedAt, correction.units]
    case 'block':
      return [correction.duration, correction.isPenalty ? 1 : 0]
    case 'hold':
      return [correction.duration]
    case 'reset':
      return []
  }
}

/**
 * Reads the correction in a request of this kind, for example a refund, on this key; the order of the numbers is that of
 * `numbersOf`. Numbers that are absent become NaN, which `wholeNumber` refuses.
 * @throws {MalformedFrame} for a kind that is no correction.
 */
export function correctionOf(kind: number, key: string, numbers: readonly number[]): Correction {
  const [first = NaN, second = NaN, third = NaN, fourth = NaN] = numbers
  switch (kind) {
    case REQUEST.refund:
      return { kind: 'refund', key, cost: wholeNumber(first, LARGEST_COST) }
    case REQUEST.charge:
      return { kind: 'charge', key, cost: wholeNumber(first, LARGEST_COST) }
    case REQUEST.release: {
      const charge = {
        at: wholeNumber(first),
        cost: wholeNumber(second, LARGEST_COST),
        decidedAt: wholeNumber(third),
      }
      return { kind: 'release', key, charge, units: wholeNumber(fourth, LARGEST_COST) }
    }
    case REQUEST.block:
      return { kind: 'block', key, duration: wholeNumber(first), isPenalty: wholeNumber(second, 1) === 1 }
    case REQUEST.hold:
      return { kind: 'hold', key, duration: wholeNumber(first) }
    case REQUEST.reset:
      return { kind: 'reset', key }
    default:
      throw new MalformedFrame(`a request of kind ${kind}`)
  }
}

/** Returns a number that another process sent. @throws {MalformedFrame} if it is not a whole number from 0 to `most`. */
export function wholeNumber(value: number | undefined, most = Number.MAX_SAFE_INTEGER): number {
  if (value !== undefined && Number.isInteger(value) && value >= 0 && value <= most) return value
  throw new MalformedFrame(`${value} where a whole number from 0 to ${most} belongs`)
}

/**
 * A wait in microseconds, rounded down to the whole number that the server expects: it ends the connection, and with it all
 * calls of this process, for any other. As turns come at whole microseconds, the fraction that is cut off admits no call.
 */
export function wholeWait(maxWait: number): number {
  return Math.min(Math.floor(maxWait), Number.MAX_SAFE_INTEGER)
}

export const LARGEST_COST = 2 ** 31
