import { StoreError } from '@sluice/core'
import { PERMIT_STEPS, type PermitCall, TICKET_STATES } from '@sluice/core/internal'
import type { Answer, Caller, Correction, Notice, RecordChanges, TicketState } from '@sluice/core/store'
import type { ReservationChange, ReservationEffect, ReserveCall } from '@sluice/core/store'
import type { Socket } from 'node:net'
import { type Frame, FrameReader, FrameWriter, MalformedFrame, MOST_REPLY_BYTES } from './frames.js'
import { type RecordRequest, textOf } from './machine-records.js'
import type {
  MachineBooking,
  MachineCall,
  MachinePart,
  MachineServer,
  ServerListener,
} from './machine-server.js'
import type { WirePolicies } from './wire-policies.js'
import {
  ASKS,
  CHANGE_STATES,
  numbersOf,
  numbersOfChange,
  readAnswerTag,
  REPLY,
  REQUEST,
  STANDINGS,
  wholeWait,
} from './protocol.js'
import { MOST_LISTS } from './session.js'

/**
 * The server in another process. While few calls are in flight, a call is sent at once; beyond that, the calls of one turn of
 * the event loop leave in one write. Replies come in the order of the calls.
 */
export class RemoteServer implements MachineServer {
  readonly epoch: number
  readonly #reader = new FrameReader(MOST_REPLY_BYTES)
  readonly #writer = new FrameWriter()
  /** The lists that the server knows, by their text. */
  readonly #lists = new Map<string, number>()
  /** Calls that were written, the oldest at `#answered`. */
  #written: RemoteCall[] = []
  #answered = 0
  #waiting: RemoteCall[] = []
  #error: Error | undefined

  /**
   * Talks to the server by `socket`, on which greetings were exchanged; `epoch` is the server's random number. The socket does
   * not keep the process alive. When it closes, the calls without an answer fail, and `listener` is told that the server has
   * ended.
   */
  constructor(
    private readonly socket: Socket,
    epoch: number,
    private readonly listener: ServerListener,
  ) {
    this.epoch = epoch
    socket.unref()
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('close', () => {
      this.#fail(new StoreError('STORE_UNAVAILABLE', 'the connection to the process that serves ended'))
      listener.ended(this)
    })
  }

  /**
   * Has the server decide a call (`ask`: to consume, peek or book, for example), and resolves with the answer. The list of
   * policies is sent as a number; `maxWait` is in microseconds.
   */
  decide(list: WirePolicies, { ask, key, cost, maxWait, caller }: MachineCall): Promise<Answer> {
    return remoteCall(
      this.#send,
      caller,
      (writer) => writer.add(ASKS[ask], this.#numberFor(list), [cost, wholeWait(maxWait)], key),
      REPLY.answer,
      (reply) => answerIn(reply, this.epoch, key, cost),
    )
  }

  /**
   * Has the server decide a call on several keys in one step, and resolves with an answer for each of its parts. The request has
   * the keys as JSON, and three numbers for each part: that of its list of policies, the cost, and 1 if its denial denies the whole
   * call. The reply has for each part how many numbers its answer has, the answer's tag, and these numbers.
   */
  together(parts: readonly MachinePart[], caller?: Caller): Promise<readonly Answer[]> {
    return remoteCall(
      this.#send,
      caller,
      (writer) => {
        const numbers = parts.flatMap(({ list, cost, enforce }) => [
          this.#numberFor(list),
          cost,
          enforce ? 1 : 0,
        ])
        writer.add(REQUEST.together, 0, numbers, JSON.stringify(parts.map(({ key }) => key)))
      },
      REPLY.answers,
      ({ numbers }) => {
        let next = 0
        return parts.map(({ key, cost }) => {
          const [size, tag] = [numbers[next]!, numbers[next + 1]!]
          next += 2 + size
          return answerIn({ tag, numbers: numbers.slice(next - size, next) }, this.epoch, key, cost)
        })
      },
    )
  }

  /**
   * Asks the server whether a booking (units charged for a later instant) stands, is lost, or is held because its key is blocked
   * or paused. A reply with an unknown number counts as 'lost'.
   */
  async confirm(list: WirePolicies, { number }: MachineBooking): Promise<'stands' | 'lost' | 'held'> {
    const [standing] = await this.#effect(REQUEST.confirm, list, '', [number])
    return STANDINGS[standing!] ?? 'lost'
  }

  /**
   * Cancels a booking on the server, which knows it by its number. Resolves with true if the booking is undone as if it had never
   * been made, with false if its units were only given back as far as they still count.
   */
  async cancel(list: WirePolicies, { number, key, at, cost, decidedAt }: MachineBooking): Promise<boolean> {
    const [isUndone] = await this.#effect(REQUEST.cancel, list, key, [number, at, cost, decidedAt])
    return isUndone === 1
  }

  /**
   * Has the server make a correction, such as a refund or a block, and resolves with the units that took effect. The callback
   * `counted` of a charge, if it has one, gets what counts after the charge.
   */
  async correct(list: WirePolicies, correction: Correction, caller?: Caller): Promise<number> {
    const { kind, key } = correction
    const numbers = numbersOf(correction)
    const [effect, ...counts] = await this.#effect(REQUEST[kind], list, key, numbers, caller)
    if ('counted' in correction) correction.counted?.(counts)
    return effect!
  }

  /**
   * Sends the server a call that reserves `cost` units of a key, and resolves with the server's answer. `list` is the limiter's list of
   * policies, which the server knows by a number.
   */
  reserve(list: WirePolicies, { key, cost, id, ttl, atEnd }: ReserveCall, caller?: Caller): Promise<Answer> {
    return remoteCall(
      this.#send,
      caller,
      (writer) => writer.add(REQUEST.reserve, this.#numberFor(list), [cost, id, ttl, atEnd], key),
      REPLY.answer,
      (reply) => answerIn(reply, this.epoch, key, cost),
    )
  }

  /**
   * Has the server settle or extend a reservation (`change`), and resolves with its state after that, the units that took effect and
   * its end. `list` is the limiter's list of policies, which the server knows by a number.
   */
  change(list: WirePolicies, change: ReservationChange, caller?: Caller): Promise<ReservationEffect> {
    return remoteCall(
      this.#send,
      caller,
      (writer) => writer.add(REQUEST.change, this.#numberFor(list), numbersOfChange(change), change.key),
      REPLY.changed,
      ({ numbers: [state, effect, end] }) => ({ state: CHANGE_STATES[state!]!, effect: effect!, end: end! }),
    )
  }

  /**
   * Takes one step (to take, wait, poll, renew or release) for some tickets of a semaphore on the server. A ticket is the number
   * of a call that holds a permit or waits for one. Resolves with the new states of the tickets, in their order.
   */
  permits({
    step,
    semaphore,
    name,
    key,
    tickets,
    limit,
    lease,
  }: PermitCall): Promise<readonly TicketState[]> {
    const numbers = [semaphore, limit, lease, ...tickets]
    return remoteCall(
      this.#send,
      undefined,
      (writer) => writer.add(REQUEST.permits, PERMIT_STEPS.indexOf(step), numbers, `${name}\n${key}`),
      REPLY.states,
      (reply) => reply.numbers.map((state) => TICKET_STATES[state] ?? 'unknown'),
    )
  }

  /**
   * Sends the server a request to write or read records (what operators have set for single keys), as JSON text. Resolves with the
   * changes that the server knows; null if a record was not written, as there are too many.
   */
  records(request: RecordRequest): Promise<RecordChanges | null> {
    return remoteCall(
      this.#send,
      undefined,
      (writer) => writer.add(REQUEST.records, 0, [], textOf(request)),
      REPLY.records,
      ({ text }) => JSON.parse(text) as RecordChanges | null,
    )
  }

  /** Rejects all calls with this error, and ends the connection. */
  close(error: Error): void {
    this.#fail(error)
    this.socket.destroy()
  }

  /**
   * Sends a request of this kind whose reply is an effect, and resolves with the numbers of the reply. Their meaning depends on
   * the kind; of a refund, for example, the units that took effect.
   */
  #effect(kind: number, list: WirePolicies, key: string, numbers: readonly number[], caller?: Caller) {
    return remoteCall(
      this.#send,
      caller,
      (writer) => writer.add(kind, this.#numberFor(list), numbers, key),
      REPLY.effect,
      (reply) => reply.numbers,
    )
  }

  /**
   * The number that stands for a list of policies in requests to this server, so that the list itself is sent only once. A list
   * without a number gets the next, and is written with it before the request. Once all `MOST_LISTS` numbers are used, it gets
   * the number of the list that was used least recently; that one is sent anew with its next call.
   */
  #numberFor(list: WirePolicies): number {
    const known = this.#lists.get(list.text)
    if (known !== undefined) {
      if (this.#lists.size < MOST_LISTS) return known
      // Deleted first, so that it becomes the newest of the map: no other list of the same call may take its number.
      this.#lists.delete(list.text)
      this.#lists.set(list.text, known)
      return known
    }
    let number = this.#lists.size
    if (number === MOST_LISTS) {
      const [text, oldest] = this.#lists.entries().next().value!
      this.#lists.delete(text)
      number = oldest
    }
    this.#lists.set(list.text, number)
    this.#writer.add(REQUEST.open, number, [], list.text)
    return number
  }

  /**
   * Sends a call: at once while fewer than `FEW_CALLS` are unanswered, otherwise at the end of this turn of the event loop, in
   * one write with all calls that wait by then. A call that waits counts as `queued`: its caller can still give up without a
   * charge. After the connection has ended, the call fails.
   */
  readonly #send = (call: RemoteCall): void => {
    if (this.#error) return call.fail(this.#error)
    const isFlushDue = this.#waiting.length > 0
    this.#waiting.push(call)
    if (isFlushDue) return call.caller?.queued?.(true)
    const unanswered = this.#written.length - this.#answered
    if (unanswered < FEW_CALLS) return this.#flush()
    call.caller?.queued?.(true)
    setImmediate(() => this.#flush())
  }

  /**
   * Sends all calls that wait, in one write to the socket. Each packs its request into `#writer` and then waits for its reply in
   * `#written`, in their order. A call whose caller has given up, or that is too long, fails alone.
   */
  #flush(): void {
    const calls = this.#waiting
    this.#waiting = []
    for (const call of calls) {
      const { caller } = call
      if (caller?.gone) {
        call.fail(notSent('the caller gave up before it was sent'))
        continue
      }
      caller?.queued?.(false)
      try {
        call.write(this.#writer)
        this.#written.push(call)
      } catch (error) {
        call.fail(error) // it is too long to be sent
      }
    }
    if (!this.#writer.isEmpty && !this.#error) this.socket.write(this.#writer.take())
  }

  /** Reads what the server sent. Bytes that make no sense end the connection, which rejects all calls. */
  #receive(chunk: Buffer): void {
    try {
      this.#reader.push(chunk, (frame) => this.#read(frame))
    } catch {
      this.socket.destroy()
    }
  }

  /**
   * Passes a frame of the server on. What the server reports by itself goes to the listener, a reply to the oldest call without
   * one, since replies come in the order of calls. Answered calls are removed from the front of the list a thousand at a time,
   * because moving the rest of the list up with every reply would cost more than the reply.
   */
  #read(frame: Frame): void {
    const { kind, numbers, text } = frame
    if (kind === REPLY.granted) return this.listener.granted(numbers[0]!, numbers[1]!)
    if (kind === REPLY.notice) {
      const end = text.indexOf('\n')
      return this.listener.notice(text.slice(0, end), JSON.parse(text.slice(end + 1)) as Notice)
    }
    this.#written[this.#answered]?.answer(frame) // before it counts as answered: it throws if the reply makes no sense
    this.#answered++
    if (this.#answered === this.#written.length) {
      this.#written = []
      this.#answered = 0
    } else if (this.#answered === MOST_ANSWERED) {
      this.#written = this.#written.slice(MOST_ANSWERED)
      this.#answered = 0
    }
  }

  /**
   * Fails all calls without an answer with this error, and later calls at once. Calls that were written may have been carried
   * out; calls that waited surely were not, and their error says so (`notSent`), unless the store was closed. Only the first
   * error counts.
   */
  #fail(error: Error): void {
    if (this.#error) return
    this.#error = error
    const [waiting, written] = [this.#waiting, this.#written.slice(this.#answered)]
    this.#waiting = []
    this.#written = []
    this.#answered = 0
    const isClosed = (error as StoreError).code === 'CLOSED'
    for (const call of waiting) call.fail(isClosed ? error : notSent(error.message))
    for (const call of written) call.fail(error)
  }
}

/** With fewer calls than this in flight, a call is sent at once. */
const FEW_CALLS = 4
/** Answered calls that are kept in the list before it is shortened. */
const MOST_ANSWERED = 1024

/** One call to a server elsewhere. */
interface RemoteCall {
  readonly caller: Caller | undefined
  write(writer: FrameWriter): void
  answer(reply: Frame): void
  fail(error: unknown): void
}

/**
 * Sends a call by `send`, which has `write` add its frame to a writer, and resolves with what `read` makes of the reply. The reply
 * must be a frame of this `kind`; one of the kind `refused` says why the server has not carried out the call, which then rejects.
 * `caller` says whether the answer is still wanted; it is undefined for a call that is never given up.
 * @throws {MalformedFrame} into the connection, which it ends, for a reply of another kind.
 */
function remoteCall<T>(
  send: (call: RemoteCall) => void,
  caller: Caller | undefined,
  write: (writer: FrameWriter) => void,
  kind: number,
  read: (reply: Frame) => T,
): Promise<T> {
  return new Promise((resolve, fail) => {
    const answer = (reply: Frame): void => {
      if (reply.kind === REPLY.refused)
        return fail(new StoreError('STORE_ERROR', reply.text, { sent: false }))
      if (reply.kind !== kind) throw new MalformedFrame(`a reply of kind ${reply.kind} in place of ${kind}`)
      resolve(read(reply))
    }
    send({ caller, write, answer, fail })
  })
}

const NONE: number[] = []

/**
 * The answer of a store, read from a reply. Six numbers are always there: the instant `now` of the decision; `at`, when the cost
 * fits or was booked; the units that remain; `resetAt`, when all are free again; in a denial the instant at which one unit more than
 * remains would fit, otherwise the number by which the server knows the booking, 0 without one; and when a block of the key ends, or
 * 0. Then follow, as far as they are there: `parts`, three numbers for each of several policies; the units `used` under each policy;
 * and `held`, the units of each that reservations hold, with their next end and how many these are. A booking keeps the `key`, the
 * `cost` and the server's `epoch` for when it is cancelled, and the answer the epoch for when its charge is released.
 */
function answerIn(
  { tag, numbers }: Pick<Frame, 'tag' | 'numbers'>,
  epoch: number,
  key: string,
  cost: number,
): Answer {
  if (numbers.length < 6) throw new MalformedFrame(`an answer of ${numbers.length} numbers`)
  const [now, at, remaining] = [numbers[0]!, numbers[1]!, numbers[2]!]
  const [resetAt, nextUnitAtOrBooking, blockedUntil] = [numbers[3]!, numbers[4]!, numbers[5]!]
  const { reason, binding, hasUsed, hasHeld } = readAnswerTag(tag)
  // Read from the end: what was taken is no part of the rest any more.
  const rest = numbers.length > 6 ? numbers.slice(6) : NONE
  const heldCount = hasHeld ? rest.pop() : undefined
  const nextEnd = hasHeld ? rest.pop() : undefined
  const held = heldCount ? rest.splice(-heldCount) : undefined
  // One number behind the three of each of several policies, or the only one left of a single policy.
  const used = hasUsed ? rest.splice(-Math.ceil(rest.length / 4)) : undefined
  const parts = rest.length > 0 ? rest : undefined
  // Both answers are written out: V8 makes a copy by spread in slower code, and its readers then meet another form of object.
  if (reason !== undefined) {
    const [nextUnitAt, booking] = [nextUnitAtOrBooking, undefined]
    return {
      now,
      at,
      reason,
      binding,
      remaining,
      resetAt,
      parts,
      used,
      held,
      nextEnd,
      booking,
      nextUnitAt,
      blockedUntil: blockedUntil || undefined,
    }
  }
  const number = nextUnitAtOrBooking
  const booking: MachineBooking | undefined =
    number === 0 ? undefined : { key, at, cost, decidedAt: now, epoch, number, isCancelled: false }
  return { now, at, reason, binding, remaining, resetAt, parts, used, held, nextEnd, booking, epoch }
}

/** The error of a call that was never written to the server, so that it was surely not carried out. */
export function notSent(why: string): StoreError {
  return new StoreError('STORE_UNAVAILABLE', why, { sent: false })
}
