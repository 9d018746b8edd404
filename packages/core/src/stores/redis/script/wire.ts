import { Buffer } from 'node:buffer' // the global is a getter
import { createHash } from 'node:crypto'
import type { Policy } from '../../../algorithms/contract/policy.js'
import { type Answer, type Booking, type DatedCharge, REASONS, type Receiver } from '../../store.js'
import { isRefusedBy, storeError } from '../clients/failure.js'
import type { RedisConnection, RedisKey, ScriptReply } from '../redis-connection.js'

/*
 * The way of a call to a script and back: the packed argument, the runner that sends it, and the packed reply. Numbers are
 * little-endian doubles, which cost Redis and the client less than texts and lose no digit. lua/README.md describes both.
 */

/** The numbers of the operations in scripts. */
export const OPERATIONS = {
  consume: 1,
  peek: 2,
  try: 3,
  book: 4,
  reserve: 5,
  refund: 6,
  charge: 7,
  block: 8,
  hold: 9,
  reset: 10,
  confirm: 11,
  cancel: 12,
  release: 13,
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

/** The argument of a call. `clock` is -1 for Redis's own; `nonce` becomes the version or epoch of state that it writes. */
export function packRequest(request: ScriptRequest, clock: number, nonce: number): Buffer {
  const { operation, policies, cost = 0, count = 1, span = 0, token, slowest } = request
  const numbers = [cost, nonce]
  for (const { limit, capacity } of policies) numbers.push(limit, capacity)
  if (operation !== 'consume' || count > 1 || clock >= 0 || slowest) {
    numbers.push(OPERATIONS[operation], count, clock, span)
  }
  if (slowest) numbers.push(...slowest)
  return packed(numbers, token)
}

/** A part of a call on several keys, as its script decides it. */
export interface ScriptPart {
  readonly request: ScriptRequest
  /** Whether its denial denies the whole. */
  readonly enforce: boolean
}

/**
 * Packs the argument of a whole: a call on several keys that charges all of its parts, one for each key, or none. The numbers of
 * a plain whole come first. Only if one part is not enforced, a smaller limit was seen or the clock is not Redis's, more follow.
 * `clock` is in microseconds, -1 for Redis's own.
 */
export function packWhole(parts: readonly ScriptPart[], clock: number, nonce: () => number): Buffer {
  const numbers: number[] = []
  for (const { request } of parts) {
    numbers.push(request.cost!, nonce())
    for (const { limit, capacity } of request.policies) numbers.push(limit, capacity)
  }
  const hasSlowest = parts.some(({ request }) => request.slowest)
  if (clock < 0 && !hasSlowest && parts.every(({ enforce }) => enforce)) return packed(numbers)
  numbers.push(clock, hasSlowest ? 1 : 0)
  for (const { request, enforce } of parts) {
    numbers.push(enforce ? 1 : 0, ...(request.slowest ?? request.policies.map(({ limit }) => limit)))
  }
  return packed(numbers)
}

/** Packs the charge whose units are to be released: its instant, its cost, and when it was decided; instants in microseconds. */
export function packCharge({ at, cost, decidedAt }: DatedCharge): Buffer {
  return packed([at, cost, decidedAt])
}

/** Bytes with these numbers as doubles, and others behind them. */
export function packed(numbers: readonly number[], rest?: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * DOUBLE + (rest?.length ?? 0))
  for (let i = 0; i < numbers.length; i++) bytes.writeDoubleLE(numbers[i]!, i * DOUBLE)
  rest?.copy(bytes, numbers.length * DOUBLE)
  return bytes
}

/** A booking in Redis, with what the script needs to confirm or cancel it. */
export interface RedisBooking extends Booking {
  isCancelled: boolean
  /** Epoch, version, and what the booking replaced. */
  readonly token: Buffer
}

/** The answers of `count` equal calls, in order. */
export function unpackAnswers(reply: Buffer, policies: readonly Policy[], count: number): readonly Answer[] {
  const reader = new NumberReader(reply)
  const answers: Answer[] = []
  while (reader.at < reply.length) answers.push(reader.answer(policies.length))
  // The script leaves out what follows a denial: the same again.
  while (answers.length < count) answers.push(answers.at(-1)!)
  return answers
}

/** The answer of a single call, with the booking that it made: a reply that is longer than its numbers ends with the token. */
export function unpackAnswer(reply: Buffer, { policies, cost = 0 }: ScriptRequest, key: string): Answer {
  const reader = new NumberReader(reply)
  const answer = reader.answer(policies.length)
  if (reader.at === reply.length) return answer
  const { at, now: decidedAt } = answer
  const token = reply.subarray(reader.at)
  const booking: RedisBooking = { key, at, cost, decidedAt, token, isCancelled: false }
  return { ...answer, booking }
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

/**
 * Returns how a booking stands, by the reply to `confirm`: 0 if its charge is still in the key's state, else the number of the
 * reason why its caller may not go on.
 */
export function unpackConfirmation(reply: Buffer): 'stands' | 'lost' | 'held' {
  const state = reply.readDoubleLE(0)
  return state === 0 ? 'stands' : REASONS[state] === 'held' ? 'held' : 'lost'
}

/** The units of a correction that took effect; 0 for those without a reply. Of a cancellation 1 if it undid the booking. */
export function unpackEffect(reply: Buffer): number {
  return reply.length > 2 * DOUBLE ? reply.readDoubleLE(2 * DOUBLE) : 0
}

const DOUBLE = 8
const FAILURE = '!'.charCodeAt(0)
/** In the first number of an answer. */
const HEALED = 1
const LONG = 2

/** Reads the numbers of a reply, one after the other. */
class NumberReader {
  readonly #numbers: DataView
  /** Bytes that were read. */
  at = 0

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.#numbers = new DataView(buffer, byteOffset, byteLength)
  }

  /** Reads the next number, and goes on behind it. */
  next(): number {
    const number = this.#numbers.getFloat64(this.at, true)
    this.at += DOUBLE
    return number
  }

  /**
   * Reads the answer to one call under this number of policies. Its first number says whether it is long: an answer to a call
   * that passed at once leaves out the reason, the instant and what follows from them.
   */
  answer(policies: number): Answer {
    const isLong = (this.next() & LONG) !== 0
    const now = this.next()
    if (!isLong) return this.passed(now, policies)
    const at = this.next()
    const reason = REASONS[this.next()]
    const [binding, remaining, resetAt] = [this.next(), this.next(), this.next()]
    const [nextUnitAt, blockedUntil] = [this.next(), this.next()]
    const parts = policies > 1 ? Array.from({ length: 3 * policies }, () => this.next()) : undefined
    const answer = { now, at, reason, binding, remaining, resetAt, parts, booking: undefined }
    if (!reason) return answer
    return blockedUntil > now ? { ...answer, nextUnitAt, blockedUntil } : { ...answer, nextUnitAt }
  }

  /** The answer to a call that passed at once. The earliest instant of each policy is `now`, and is left out. */
  passed(now: number, policies: number): Answer {
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

/**
 * The reply to a call of a script with several keys, read key by key: an instant, then remaining and resetAt for each plain
 * call and policy, and a mark for each key that has a reply of its own.
 */
export class PackedReply {
  readonly #reader: NumberReader
  readonly #now: number

  /** Reads the instant, with which the reply begins. */
  constructor(reply: Uint8Array) {
    this.#reader = new NumberReader(reply)
    this.#now = this.#reader.next()
  }

  /** Passes over a mark, which stands where a key has a reply of its own. Returns false at the answer to a plain call. */
  passMark(): boolean {
    const isMark = this.#reader.next() < 0
    if (!isMark) this.#reader.at -= DOUBLE
    return isMark
  }

  /** The answer to the next plain call. */
  next(policies: number): Answer {
    return this.#reader.passed(this.#now, policies)
  }
}

/** The replies of a script: to plain calls of several keys in one piece, to each other key by itself. */
export interface Replies {
  readonly packed: PackedReply | undefined
  /** In the order of their keys. */
  readonly own: readonly (Buffer | Error)[]
}

/**
 * Runs scripts by their SHA-1. The text is sent until a server has run it, and again after NOSCRIPT: scripts vanish on
 * restart, failover and SCRIPT FLUSH, and each node of a Cluster has its own. After NOSCRIPT nothing was executed, so
 * nothing is repeated. Sending the text first keeps calls in flight in their order: a call that is sent again would come
 * after later ones if another process had loaded the script in between.
 */
export class ScriptRunner {
  /** The SHA-1 of each script that a server has run for this process and that was not lost since. */
  readonly #shas = new Map<string, string>()
  /** Whether a call may have several keys: not in a Cluster, nor once a server has refused that. */
  takesManyKeys: boolean

  /** Calls `onFirstReply` after the first reply. */
  constructor(
    readonly connection: RedisConnection,
    private onFirstReply: (() => void) | undefined,
  ) {
    this.takesManyKeys = !connection.isCluster
  }

  /** Forgets a script. If it is run again, its text is sent first. */
  forget(script: string): void {
    this.#shas.delete(script)
  }

  /** Runs a script once on one key. It rejects with a StoreError whose cause is the client's error. */
  run(script: string, key: RedisKey, argument: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      // With a single key, an error fails the whole call.
      const answered = ({ own }: Replies): void => resolve(own[0] as Buffer)
      this.runAll(script, [key], [argument], { answered, failed: reject })
    })
  }

  /**
   * Runs a script once for all `keys`. If `args` is shorter, the remaining keys reuse its last element. It fails only if the
   * whole call failed.
   */
  runAll(
    script: string,
    keys: readonly RedisKey[],
    args: readonly Buffer[],
    receiver: Receiver<Replies>,
  ): void {
    const { connection } = this
    const sha = this.#shas.get(script)
    let sent: Promise<ScriptReply>
    try {
      sent = sha === undefined ? connection.eval(script, keys, args) : connection.evalsha(sha, keys, args)
    } catch (error) {
      sent = Promise.reject(error)
    }
    sent.then(
      (reply) => {
        if (sha === undefined) this.#shas.set(script, this.#shas.get(script) ?? sha1(script))
        let replies: Replies
        try {
          replies = repliesOf(reply, keys.length)
        } catch (error) {
          return receiver.failed(storeError(error))
        }
        this.onFirstReply?.()
        this.onFirstReply = undefined
        receiver.answered(replies)
      },
      (error: unknown) => {
        if (sha !== undefined && isRefusedBy('NOSCRIPT', error)) {
          this.#shas.delete(script)
          return this.runAll(script, keys, args, receiver)
        }
        if (isRefusedBy('CROSSSLOT', error)) this.takesManyKeys = false
        receiver.failed(storeError(error))
      },
    )
  }
}

/** The SHA-1 of a script's text in hex, by which EVALSHA names a script that the server knows. */
function sha1(script: string): string {
  return createHash('sha1').update(script).digest('hex')
}

/** The replies of a script: a list, whose first is the packed one of plain calls, or that one alone; to one key, its own. */
function repliesOf(reply: ScriptReply, keys: number): Replies {
  if (reply instanceof Uint8Array) {
    return keys > 1 ? { packed: new PackedReply(reply), own: [] } : { packed: undefined, own: [reply] }
  }
  const [packed, ...own] = reply
  return { packed: new PackedReply(packed!), own: own.map(answerOrError) }
}

/** The reply to one key, or the error that stands in its place. */
function answerOrError(reply: Buffer): Buffer | Error {
  const failure = unpackFailure(reply)
  return failure === undefined ? reply : storeError(new Error(failure))
}
