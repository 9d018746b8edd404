import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import { storeClosed } from '../../values/closing.js'
import type { Receiver } from '../store.js'
import { isCrossSlot } from './clients/failure.js'
import type { Bytes } from './redis-connection.js'
import {
  failAll,
  markSent,
  prepared,
  type Replies,
  type ScriptCall,
  settleAll,
  stillWaitedFor,
} from './script-call.js'

/** Sends calls of one script to Redis. */
export interface Transport {
  /** Whether one call may have several keys. */
  takesManyKeys(): boolean
  /**
   * Runs the script once for all `keys`. If `args` is shorter, the remaining keys reuse its last element. It fails only if
   * the whole call failed. After a failure because of keys in several slots, `takesManyKeys` returns false.
   */
  send(keys: readonly string[], args: readonly Bytes[], receiver: Receiver<Replies>): void
  /** Runs `sendAll`, and writes what it sends to a server in one piece. */
  inOneWrite(sendAll: () => void): void
}

export interface GroupCommitOptions {
  /** Default true. false: every call is sent on its own, immediately. */
  readonly gathers?: boolean
  /** Runs a task at the end of the turn, after pending socket data was read. Default `setImmediate`. */
  readonly atTurnEnd?: (task: () => void) => void
  /** Milliseconds on a clock that does not run back. Default `performance.now`. */
  readonly now?: () => number
}

/**
 * Combines calls of one script into batches, each of them one script call, which takes a fraction of the time in Redis and
 * in this process. While few calls are in flight, a call is sent immediately. Beyond that, calls that arrive within one turn
 * of the event loop form a batch. Several batches are in flight, so that Redis and this process work at the same time; at
 * the bound, calls wait until a batch is back.
 *
 * Callers that are answered together usually ask again in the same turn. So answered calls count as in flight until the end
 * of the turn in which their batch came back. None of the next calls is sent alone, and a batch is sent as soon as it holds
 * a quarter of the calls that are expected, or half of more than 64, so that Redis decides it while this process fills the
 * next one.
 *
 * Calls on one key are carried out in the order in which they were made. A call is sent again only if its batch was refused
 * because its keys lie in several slots: nothing was carried out then. A call whose caller has given up is not sent.
 */
export class GroupCommit {
  readonly #transport: Transport
  readonly #gathers: boolean
  readonly #atTurnEnd: (task: () => void) => void
  readonly #flush = (): void => this.#flushAll()
  readonly #inFlight: BatchesInFlight
  /** Batches that wait to be sent, the oldest first. */
  #waiting: Batch[] = []
  #isFlushDue = false
  /** Calls whose batches came back in this turn. */
  #justAnswered = 0
  /** Calls at which a batch is sent before the turn ends. */
  #part = MOST_CALLS
  #closed = false

  constructor(transport: Transport, options: GroupCommitOptions = {}) {
    this.#transport = transport
    this.#gathers = options.gathers ?? true
    this.#atTurnEnd = options.atTurnEnd ?? setImmediate
    this.#inFlight = new BatchesInFlight(options.now)
  }

  /** Whether no call waits or is in flight. */
  get isIdle(): boolean {
    this.#inFlight.dropLost()
    return this.#waiting.length === 0 && this.#inFlight.calls === 0
  }

  /** @throws {StoreError} CLOSED. */
  add(call: ScriptCall): void {
    if (this.#closed) throw storeClosed()
    const isAlone = this.#waiting.length === 0 && this.#inFlight.calls + this.#justAnswered < FEW_CALLS
    if (isAlone || !this.#gathers) return this.#send([call])
    if (call.caller) call.caller.unsent = true
    gather(call, this.#waiting)
    const isBusy = this.#inFlight.room <= 0
    // If a call may have only one key, none is sent before the end of the turn: each server then gets all in one write.
    const sendsFirst = !isBusy && this.#isReady(this.#waiting[0]!) && this.#transport.takesManyKeys()
    if (sendsFirst) this.#send(this.#waiting.shift()!.calls())
    if (!isBusy && this.#waiting.length > 0) this.#flushLater()
  }

  /** Rejects the calls that wait to be sent, and all later ones. */
  close(): void {
    this.#closed = true
    const waiting = this.#waiting
    this.#waiting = []
    for (const batch of waiting) for (const call of batch.calls()) failAll(call, storeClosed())
  }

  #isReady(batch: Batch): boolean {
    return batch.isFull || batch.size >= this.#part
  }

  #flushLater(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#atTurnEnd(this.#flush)
  }

  #flushAll(): void {
    this.#isFlushDue = false
    this.#justAnswered = 0
    this.#part = MOST_CALLS
    if (this.#waiting.length === 0) return
    this.#inFlight.dropLost()
    if (this.#transport.takesManyKeys()) this.#sendWaiting()
    else this.#transport.inOneWrite(() => this.#sendWaiting())
  }

  #sendWaiting(): void {
    const most = this.#partSize()
    while (this.#waiting.length > 0 && this.#inFlight.room > 0) {
      const calls = this.#waiting.shift()!.calls()
      const parts = Math.min(Math.ceil(calls.length / most), this.#inFlight.room)
      const size = Math.ceil(calls.length / parts)
      for (let i = 0; i < calls.length; i += size) this.#send(calls.slice(i, i + size))
    }
  }

  /**
   * Calls per batch, equal ones counted, so that the pending calls make several batches: Redis then decides one while this
   * process reads the replies of another, and neither of them falls asleep. With a single batch they would take turns.
   */
  #partSize(): number {
    let calls = this.#inFlight.calls + this.#justAnswered
    for (const { size } of this.#waiting) calls += size
    return Math.max(LEAST_PART, Math.ceil(calls / (calls > MANY_CALLS ? 2 : 4)))
  }

  #send(gathered: ScriptCall[]): void {
    const calls = stillWaitedFor(gathered)
    if (calls.length === 0) return
    if (this.#transport.takesManyKeys()) return this.#sendBatch(calls, true)
    // Not counted as batches: a Cluster node that does not answer must not hold up calls to the others.
    for (const call of calls) this.#sendBatch([call], false)
  }

  #sendBatch(gathered: ScriptCall[], isBatch: boolean): void {
    const { calls, args } = prepared(gathered)
    const keys: string[] = []
    let callers = 0
    for (const call of calls) {
      keys.push(call.key)
      markSent(call)
      callers += call.alike ? 1 + call.alike.length : 1
    }
    const batch = this.#inFlight.begin(callers, isBatch)
    this.#transport.send(keys, args, {
      answered: (replies) => {
        this.#returned(batch)
        settleAll(calls, replies)
      },
      failed: (error) => {
        this.#returned(batch)
        const isRefused = calls.length > 1 && isCrossSlot((error as Error).cause)
        if (isRefused) this.#send(gathered)
        else for (const call of calls) failAll(call, error)
      },
    })
  }

  #returned(batch: SentBatch): void {
    if (!this.#inFlight.end(batch)) return
    if (!this.#isFlushDue) this.#flushAll()
    if (batch.callers < LEAST_PART) return
    this.#justAnswered += batch.callers
    this.#part = this.#partSize()
    this.#flushLater()
  }
}

/** With fewer calls than this in flight, a call is sent immediately. */
const FEW_CALLS = 6

/**
 * Up to so many pending calls are divided into four batches: with fewer, this process and Redis would take turns. More are
 * divided into two, as large batches cost Redis less for each call.
 */
const MANY_CALLS = 64

/** The fewest calls that make a batch. */
const LEAST_PART = 2

/**
 * The batches that were sent and have not come back. One that has no outcome for a minute counts as lost: some clients never
 * settle a call after its connection broke, and calls would wait for such a batch forever.
 */
class BatchesInFlight {
  /** Calls in them. */
  calls = 0
  readonly #now: () => number
  /** The oldest first. */
  readonly #sent = new Set<SentBatch>()
  #bounded = 0

  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  /** How many more may be sent. */
  get room(): number {
    if (this.#bounded >= MOST_BATCHES) this.dropLost()
    return MOST_BATCHES - this.#bounded
  }

  /** Counts a batch that is sent now. One that is not bounded takes no room. Pass the result to `end` once it has come back. */
  begin(callers: number, isBounded: boolean): SentBatch {
    const batch = { callers, isBounded, since: this.#now() }
    this.#sent.add(batch)
    this.calls += callers
    if (isBounded) this.#bounded++
    return batch
  }

  /** Returns false if the batch had counted as lost. */
  end(batch: SentBatch): boolean {
    if (!this.#sent.delete(batch)) return false
    this.calls -= batch.callers
    if (batch.isBounded) this.#bounded--
    return true
  }

  dropLost(): void {
    const lost = this.#now() - LOST_MS
    for (const batch of this.#sent) {
      if (batch.since > lost) return
      this.end(batch)
    }
  }
}

interface SentBatch {
  readonly callers: number
  readonly isBounded: boolean
  readonly since: number
}

/** Enough to keep Redis and this process busy; calls that arrive beyond that fill later batches better. */
const MOST_BATCHES = 16

const LOST_MS = 60_000

/** Calls that will be sent as one script call. A key occurs once; calls on it that differ go into later batches, in order. */
class Batch {
  /** By keyspace and caller's key, as texts that are put together take longer to look up. */
  readonly #byKeyspace = new Map<string, Map<string, ScriptCall>>()
  readonly #calls: ScriptCall[] = []
  #size = 0
  /** On logs, which write an entry for each; a single call may have as many as a batch. */
  #units = 0

  /** Number of calls, equal ones included. */
  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#calls.length >= MOST_KEYS || this.#size >= MOST_CALLS || this.#units >= MOST_ENTRIES
  }

  has({ keyspace, callerKey }: ScriptCall): boolean {
    return this.#byKeyspace.get(keyspace)?.has(callerKey) ?? false
  }

  /** Adds a call if there is room; for a key that is in the batch already, only a call equal to the first one. */
  take(call: ScriptCall): boolean {
    if (this.#size > 0 && (this.#size >= MOST_CALLS || this.#units + call.units > MOST_ENTRIES)) return false
    let calls = this.#byKeyspace.get(call.keyspace)
    const first = calls?.get(call.callerKey)
    if (first === undefined) {
      if (this.#calls.length >= MOST_KEYS) return false
      if (!calls) this.#byKeyspace.set(call.keyspace, (calls = new Map()))
      calls.set(call.callerKey, call)
      this.#calls.push(call)
    } else if (!first.isLike(call)) return false
    else if (first.alike) first.alike.push(call)
    else first.alike = [call]
    this.#size++
    this.#units += call.units
    return true
  }

  /** The first call of each key, which holds the equal ones. */
  calls(): ScriptCall[] {
    return this.#calls
  }
}

/** Adds the call to the first waiting batch that has room, but to none before another batch with the same key. */
function gather(call: ScriptCall, waiting: Batch[]): void {
  let i = waiting.length - 1
  while (i > 0 && !waiting[i]!.has(call)) i--
  for (i = Math.max(i, 0); i < waiting.length; i++) if (waiting[i]!.take(call)) return
  const batch = new Batch()
  batch.take(call)
  waiting.push(batch)
}

/**
 * Most keys and calls in a batch, because a script blocks other clients while it runs. An equal call takes an eighth of the
 * time of another key, but larger batches would leave no second one to read while Redis decides.
 */
const MOST_KEYS = 64
const MOST_CALLS = 128
