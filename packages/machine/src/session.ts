import { type HolderTickets, PERMIT_STEPS, type PermitHolder, TICKET_STATES } from '@sluice/core/internal'
import type { Answer, Ask, Correction, Notice } from '@sluice/core/store'
import { createServer, type Server, type Socket } from 'node:net'
import { type Frame, FrameReader, FrameWriter, MalformedFrame, MOST_REPLY_BYTES } from './frames.js'
import type { Host, HostCaller, HostedKeyspace } from './host.js'
import type { RecordRequest } from './machine-records.js'
import { readWirePolicies, UnreadablePolicies } from './wire-policies.js'
import {
  answerTag,
  ASK_BY_KIND,
  CHANGE_STATES,
  changeOf,
  correctionOf,
  LARGEST_COST,
  PROTOCOL,
  REPLY,
  REQUEST,
  STANDINGS,
  wholeNumber,
} from './protocol.js'

/** One connected process, as its server sees it. Its calls are carried out in order, and each has one reply. */
export class ClientSession implements HostCaller, PermitHolder {
  readonly tickets: HolderTickets = new Map()
  readonly #reader = new FrameReader()
  readonly #writer = new FrameWriter(MOST_REPLY_BYTES)
  /** The lists that the client has opened, by number: the text of each until the first call with it. */
  readonly #lists: (HostedKeyspace | string)[] = []
  #isGreeted = false

  /**
   * Serves one client process by its connection, `socket`: carries its calls out in `host`, which has the state of all processes of the
   * machine. A client that greets with another `name` than this store's is refused.
   */
  constructor(
    private readonly host: Host,
    private readonly name: string,
    private readonly socket: Socket,
  ) {}

  /**
   * Carries out the requests that are complete with this chunk of bytes, and sends their replies. A frame that makes no sense
   * ends the connection, after the replies to those before it. When the connection is ending already, the chunk is ignored.
   */
  receive(chunk: Buffer): void {
    if (!this.socket.writable) return
    try {
      this.#reader.push(chunk, (frame) => this.#reply(frame))
      this.#flush()
    } catch {
      this.#flush()
      this.socket.destroySoon()
    }
  }

  /** Adds a notice about a limiter to the replies of the request that caused it. */
  notice(name: string, notice: Notice): void {
    this.#writer.add(REPLY.notice, 0, [], `${name}\n${JSON.stringify(notice)}`)
  }

  /**
   * Reports to the client that a waiting ticket, one of its calls in the queue of a semaphore, got its permit. The report goes
   * out with replies that are about to be sent; without any, if another process's request has caused it, in a separate message.
   */
  granted(semaphore: number, ticket: number): void {
    if (this.#writer.isEmpty) queueMicrotask(() => this.#flush())
    this.#writer.add(REPLY.granted, 0, [semaphore, ticket])
  }

  /** Sends the replies so far. A client that does not read them, because its process has stopped, is disconnected. */
  #flush(): void {
    if (this.#writer.isEmpty || !this.socket.writable) return
    this.socket.write(this.#writer.take())
    if (this.socket.writableLength > MOST_UNREAD) this.socket.destroy()
  }

  /**
   * Carries out one request and adds its reply. If this process cannot make the policies of its list, it refuses this request alone,
   * and does not end the connection, which has the calls and the permits of a whole process.
   * @throws {MalformedFrame} for a request that makes no sense.
   */
  #reply(frame: Frame): void {
    try {
      this.#carryOut(frame)
    } catch (error) {
      if (!(error instanceof UnreadablePolicies)) throw error
      this.#writer.add(REPLY.refused, 0, [], error.message)
    }
  }

  /**
   * Carries out one request (`kind`) and adds its reply, so that replies come in the order of requests. `tag` is the number of a
   * list of policies that the client has opened, and `text` a key, unless the kind says otherwise (see `REQUEST`). Only the
   * opening of a list has no reply. A kind that is no other is that of a correction.
   * @throws {MalformedFrame} for a request that makes no sense; {UnreadablePolicies} with nothing carried out.
   */
  #carryOut({ kind, tag, numbers, text }: Frame): void {
    if (kind === REQUEST.hello) return this.#greet(numbers, text)
    if (!this.#isGreeted) throw new MalformedFrame('a request before the greeting')
    const ask = ASK_BY_KIND.get(kind)
    if (ask) return this.#decide(ask, tag, text, numbers)
    switch (kind) {
      case REQUEST.open:
        if (tag >= MOST_LISTS || tag > this.#lists.length) throw new MalformedFrame(`list ${tag}`)
        this.#lists[tag] = text
        return
      case REQUEST.together:
        return this.#together(numbers, text)
      case REQUEST.confirm: {
        const standing = this.#keyspaceOf(tag).confirm(wholeNumber(numbers[0]))
        return this.#writer.add(REPLY.effect, 0, [STANDINGS.indexOf(standing)])
      }
      case REQUEST.cancel: {
        const charge = {
          at: wholeNumber(numbers[1]),
          cost: wholeNumber(numbers[2], LARGEST_COST),
          decidedAt: wholeNumber(numbers[3]),
        }
        const isUndone = this.#keyspaceOf(tag).cancel(wholeNumber(numbers[0]), text, charge)
        return this.#writer.add(REPLY.effect, 0, [isUndone ? 1 : 0])
      }
      case REQUEST.reserve: {
        const [cost, id, ttl, atEnd] = numbers
        const call = {
          key: text,
          cost: wholeNumber(cost, LARGEST_COST),
          id: wholeNumber(id),
          ttl: wholeNumber(ttl),
          atEnd: wholeNumber(atEnd),
        }
        return this.#answer(this.#keyspaceOf(tag).reserve(call))
      }
      case REQUEST.change: {
        const { state, effect, end } = this.#keyspaceOf(tag).change(changeOf(text, numbers))
        return this.#writer.add(REPLY.changed, 0, [CHANGE_STATES.indexOf(state), effect, end])
      }
      case REQUEST.permits:
        return this.#permits(tag, numbers, text)
      case REQUEST.records: {
        const changes = this.host.records(JSON.parse(text) as RecordRequest)
        return this.#writer.add(REPLY.records, 0, [], JSON.stringify(changes))
      }
      default: {
        const correction = correctionOf(kind, text, numbers)
        const wantsCounts = numbers[1] === 1
        return this.#correct(this.#keyspaceOf(tag), correction, wantsCounts)
      }
    }
  }

  /**
   * Makes a correction, such as a refund, and replies with the units that took effect. After a charge of which the client wants
   * the counts, the reply also has what counts then under each policy.
   */
  #correct(keyspace: HostedKeyspace, correction: Correction, wantsCounts: boolean): void {
    const counts: number[] = []
    const counted = (all: readonly number[]) => void counts.push(...all)
    const effect = keyspace.correct(
      wantsCounts && correction.kind === 'charge' ? { ...correction, counted } : correction,
    )
    this.#writer.add(REPLY.effect, 0, [effect, ...counts])
  }

  /**
   * Replies to a greeting with the epoch of this server, a random number. If the client names the epoch of another server, which
   * it used before, the record of who holds which permit was lost with that server; so for a while permits are granted only to
   * clients that renew theirs. An epoch of 0 means that it used none.
   */
  #greet([protocol, formerEpoch]: readonly number[], name: string): void {
    if (protocol !== PROTOCOL || name !== this.name) throw new MalformedFrame('another protocol or store')
    this.#isGreeted = true
    if (formerEpoch !== 0 && formerEpoch !== this.host.epoch) this.host.stateWasLost()
    this.#writer.add(REPLY.hello, 0, [PROTOCOL, this.host.epoch])
  }

  /**
   * Decides a call on a list of policies that the client has opened, known by its number, and replies with the answer. `numbers`
   * are the cost, and the longest wait in microseconds.
   */
  #decide(ask: Ask, list: number, key: string, numbers: readonly number[]): void {
    const cost = wholeNumber(numbers[0], LARGEST_COST)
    this.#answer(this.#keyspaceOf(list).decide(ask, key, cost, wholeNumber(numbers[1])))
  }

  #answer(answer: Answer): void {
    const { tag, numbers } = this.#packAnswer(answer)
    this.#writer.add(REPLY.answer, tag, numbers)
  }

  /**
   * Decides a call on several keys in one step, and replies with all answers. Each part is three of the `numbers` (list, cost, 1 if
   * it is enforced) and a key in the JSON of `text`. The reply has for each answer the count of its numbers, its tag, and these.
   */
  #together(numbers: readonly number[], text: string): void {
    const keys = JSON.parse(text) as readonly string[]
    const parts = keys.map((key, i) => ({
      keyspace: this.#keyspaceOf(wholeNumber(numbers[3 * i])),
      key,
      cost: wholeNumber(numbers[3 * i + 1], LARGEST_COST),
      enforce: numbers[3 * i + 2] === 1,
    }))
    const answers = this.host.together(parts).flatMap((answer) => {
      const packed = this.#packAnswer(answer)
      return [packed.numbers.length, packed.tag, ...packed.numbers]
    })
    this.#writer.add(REPLY.answers, 0, answers)
  }

  /**
   * An answer as it is sent, by its tag (`answerTag`) and its numbers. A booking stays here, kept by the host, and its number is
   * sent. That shares a place with `nextUnitAt`, which only denials have; 0 if there is neither.
   */
  #packAnswer(answer: Answer): { readonly tag: number; readonly numbers: readonly number[] } {
    const { now, at, reason, binding, remaining, resetAt, parts = [], used = [], booking } = answer
    const { nextUnitAt, blockedUntil = 0, held, nextEnd = 0 } = answer
    const bookingNumber = booking ? this.host.bookings.keep(booking, now) : 0
    const nextUnitAtOrBooking = nextUnitAt ?? bookingNumber
    const numbers = [
      now,
      at,
      remaining,
      resetAt,
      nextUnitAtOrBooking,
      blockedUntil,
      ...parts,
      ...used,
      ...(held ? [...held, nextEnd, held.length] : []),
    ]
    const tag = answerTag({ reason, binding, hasUsed: used.length > 0, hasHeld: held !== undefined })
    return { tag, numbers }
  }

  /**
   * Carries out one step, such as take or renew, for tickets of a semaphore, and replies with the number of each ticket's state.
   * `tag` is the number of the step; `text` the semaphore's name and the key, with a line break between. `numbers` are the
   * semaphore's number at its client, its limit, the lease in microseconds, and the tickets.
   */
  #permits(tag: number, numbers: readonly number[], text: string): void {
    const step = PERMIT_STEPS[tag]
    const [semaphore, limit, lease, ...tickets] = numbers.map((number) => wholeNumber(number))
    const end = text.indexOf('\n')
    if (!step || lease === undefined || end < 0) throw new MalformedFrame('permits without a semaphore')
    const [name, key] = [text.slice(0, end), text.slice(end + 1)]
    const call = { step, semaphore: semaphore!, name, key, tickets, limit: limit!, lease }
    const states = this.host.permits(this, call)
    this.#writer.add(
      REPLY.states,
      0,
      states.map((state) => TICKET_STATES.indexOf(state)),
    )
  }

  /**
   * The state that belongs to a list of policies, by the number under which this client has opened the list. The text of a list is
   * read with its first call, and with each one until that succeeds.
   * @throws {MalformedFrame} for a number under which none was opened; {UnreadablePolicies}.
   */
  #keyspaceOf(list: number): HostedKeyspace {
    const opened = this.#lists[list]
    if (opened === undefined) throw new MalformedFrame(`list ${list}, which was not opened`)
    if (typeof opened !== 'string') return opened
    return (this.#lists[list] = this.host.open(readWirePolicies(opened), this))
  }
}

/** Lists that a process may have opened at once. */
export const MOST_LISTS = 1024
/** Bytes of replies that a process may leave unread. A thousand calls in flight make less than a hundredth of it. */
const MOST_UNREAD = 2 * MOST_REPLY_BYTES

/** Serves a host's state to other processes. None of its handles keeps the process alive. */
export class Service {
  readonly listener: Server
  readonly #sockets = new Set<Socket>()
  #isOpen = false

  /**
   * Makes the service by which other processes of this machine reach the store `name`. Connections are accepted once `listener`
   * listens, and answered once `open` is called.
   */
  constructor(
    private readonly host: Host,
    private readonly name: string,
  ) {
    this.listener = createServer((socket) => this.#serve(socket))
    this.listener.on('error', () => {}) // of connections that could not be accepted
  }

  /**
   * Begins to answer. Processes that connected before this, while the server was being set up, were left waiting and not
   * refused.
   */
  open(): void {
    this.#isOpen = true
    for (const socket of this.#sockets) socket.resume()
  }

  /** Ends all connections, stops listening and closes the host. */
  close(): void {
    this.listener.close()
    for (const socket of this.#sockets) socket.destroy()
    this.host.close()
  }

  /**
   * Serves one connection until it closes. The process at its other end has gone then, so its permits are given back; not if the
   * service itself was closed, as the permits end with it. Before `open` the connection is paused, and its requests wait.
   */
  #serve(socket: Socket): void {
    const session = new ClientSession(this.host, this.name, socket)
    this.#sockets.add(socket)
    socket.unref()
    socket.on('data', (chunk) => session.receive(chunk))
    socket.on('error', () => {}) // 'close' follows
    if (!this.#isOpen) socket.pause()
    socket.on('close', () => {
      if (this.#sockets.delete(socket) && this.listener.listening) this.host.left(session)
    })
  }
}
