import { storeClosed } from '../../values/closing.js'
import type { Receiver } from '../store.js'
import { type Batch, gather, MOST_CALLS, packBatch, settleAll } from './batch.js'
import { isRefusedBy } from './clients/failure.js'
import { failAll, noteSent, rejectAbandoned, type ScriptCall } from './script-call.js'
import type { Replies, ScriptRunner } from './script/runner.js'

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
 * a quarter of the calls that are expected, or half of more than 64, so that Redis is busy while the next one fills.
 *
 * In a Cluster the batches hold calls of one hash tag each, and calls without a tag are sent one by one.
 * Calls on one key are carried out in the order in which they were made. Calls on several keys go by scripts of their own, and one
 * may pass another, or calls on one of its keys, that were made before it and wait. A call is sent again, by itself, only if its batch
 * was refused because its keys lie in several slots or their slot is being moved: nothing was carried out then. A call whose
 * caller has given up is not sent.
 */
export class GroupCommit {
  readonly #gathers: boolean
  readonly #atTurnEnd: (task: () => void) => void
  readonly #now: () => number
  /**
   * Batches that were sent and have no outcome, the oldest first. One without an outcome for a minute is lost, and is left out. A Set
   * would keep batches in memory until a full collection, as the tables that it outgrows lead to each other.
   */
  readonly #sent: SentBatch[] = []
  /** The calls in these batches, equal ones included, and the batches that take up room. */
  #callsInFlight = 0
  #batchesInFlight = 0
  /** Batches that wait to be sent, the oldest first, by hash tag; under '' outside a Cluster, where any keys go together. */
  readonly #waiting = new Map<string, Batch[]>()
  #isFlushDue = false
  /** Calls whose batches came back in this turn. */
  #answeredInTurn = 0
  /** That number when calls were last to be flushed. */
  #answeredAtLastFlush = 0
  /** The number of calls at which a batch is sent before the turn ends. */
  #readySize = MOST_CALLS
  #closed = false
  /** When a batch was last sent. */
  lastUse: number

  /**
   * Makes the group of the calls of `script`, which sends those of one moment as a batch: `runner` runs a batch as one script call.
   * With `gathers` false each call is sent by itself. `atTurnEnd` runs a task at the end of this turn of the event loop, and `now`
   * returns milliseconds; tests replace them.
   */
  constructor(
    readonly runner: Pick<ScriptRunner, 'takesManyKeys' | 'connection' | 'runAll'>,
    public script: string | undefined,
    options: GroupCommitOptions = {},
  ) {
    this.#gathers = options.gathers ?? true
    this.#atTurnEnd = options.atTurnEnd ?? setImmediate
    this.#now = options.now ?? ((): number => performance.now())
    this.lastUse = this.#now()
  }

  /** Whether no call waits to be sent or for its answer. A call without an answer for a minute is lost, and waits no longer. */
  get isIdle(): boolean {
    this.#dropLost()
    return this.#waiting.size === 0 && this.#callsInFlight === 0
  }

  /** Drops the script of an idle group, so that further calls go to another group. */
  drop(): void {
    this.script = undefined
  }

  /**
   * Sends a call: at once by itself while few are in flight or were answered in this turn of the event loop, else in a batch. A
   * batch is sent when it is full or has `#readySize` calls, or else at the end of the turn. At most MOST_BATCHES are in flight, of
   * which the last few are kept for the end of the turn. In a Cluster only calls of one hash tag go together, and all at the end of
   * the turn, so that each server gets them in one write.
   * @throws {StoreError} CLOSED.
   */
  add(call: ScriptCall): void {
    if (this.#closed) throw storeClosed()
    const { takesManyKeys } = this.runner
    const isAlone = this.#waiting.size === 0 && this.#callsInFlight + this.#answeredInTurn < FEW_CALLS
    if (isAlone || !this.#gathers) return this.#sendBatch([call], takesManyKeys)
    call.caller?.queued?.(true)
    const tag = takesManyKeys ? '' : call.tag
    const waiting = this.#waiting.get(tag) ?? []
    if (waiting.length === 0) this.#waiting.set(tag, waiting)
    gather(call, waiting)
    if (!this.#hasRoom()) return
    const [oldest] = waiting
    const isReady = oldest!.isFull || oldest!.size >= this.#readySize
    if (isReady && takesManyKeys && this.#batchesInFlight < MOST_BEFORE_TURN_END) {
      this.#send(waiting.shift()!.calls)
      if (waiting.length === 0) this.#waiting.delete(tag)
    }
    if (this.#waiting.size > 0) this.#flushLater()
  }

  /** Rejects the calls that wait to be sent, and makes each later one fail. Calls that were sent still get their answers. */
  close(): void {
    this.#closed = true
    const waiting = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    for (const batch of waiting) for (const call of batch.calls) failAll(call, storeClosed())
  }

  /** Arranges that waiting calls are sent at the end of this turn of the event loop: once, however often it is called. */
  #flushLater(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#atTurnEnd(() => this.#flushAll())
  }

  /**
   * Sends the waiting calls, at the end of a turn or once a batch is back, and counts answers from 0 again. In a Cluster each server
   * gets its calls in one write. Its servers reply one after the other, and callers that were answered ask again: so if all waiting
   * calls have a hash tag, they wait until a turn brings no more replies (`isFilling`), and their batches grow.
   */
  #flushAll(): void {
    this.#isFlushDue = false
    const isFilling = this.#answeredInTurn > this.#answeredAtLastFlush && this.#callsInFlight > 0
    this.#answeredAtLastFlush = this.#answeredInTurn
    const allHaveTags = this.#waiting.size > 0 && !this.#waiting.has('')
    if (isFilling && allHaveTags) return this.#flushLater()
    this.#answeredInTurn = 0
    this.#answeredAtLastFlush = 0
    this.#readySize = MOST_CALLS
    if (this.#waiting.size === 0) return
    this.#dropLost()
    if (this.runner.takesManyKeys) this.#sendWaiting()
    else this.runner.connection.inOneWrite(() => this.#sendWaiting())
  }

  /**
   * Sends waiting batches while there is room for more in flight. A batch of one hash tag is sent whole. Any other is divided into
   * equal parts of about `most` keys, so that Redis works on one while the process reads the reply to another.
   */
  #sendWaiting(): void {
    const most = this.#bestBatchSize()
    for (const [tag, waiting] of this.#waiting) {
      while (waiting.length > 0 && this.#hasRoom()) {
        const { calls, keys } = waiting.shift()!
        const parts = tag === '' ? Math.min(Math.ceil(keys / most), MOST_BATCHES - this.#batchesInFlight) : 1
        const size = Math.ceil(calls.length / parts)
        for (let i = 0; i < calls.length; i += size) this.#send(calls.slice(i, i + size), tag)
      }
      if (waiting.length === 0) this.#waiting.delete(tag)
    }
  }

  /**
   * Returns the number of calls at which a batch is large enough: a quarter of all calls that are in flight, answered in this
   * turn or waiting; half of them if they are more than 64; at least two. So several batches are under way at once, and Redis and
   * this process work at the same time. Each of several equal calls counts.
   */
  #bestBatchSize(): number {
    let calls = this.#callsInFlight + this.#answeredInTurn
    for (const { size } of this.#waiting.get('') ?? []) calls += size
    return Math.max(LEAST_BATCH, Math.ceil(calls / (calls > MANY_CALLS ? 2 : 4)))
  }

  /** Whether one more batch may be in flight. If there is no room, first leaves out batches that are lost. */
  #hasRoom(): boolean {
    if (this.#batchesInFlight >= MOST_BATCHES) this.#dropLost()
    return this.#batchesInFlight < MOST_BATCHES
  }

  /** Stops counting batches without an outcome for a minute: some clients never settle a call after its connection broke. */
  #dropLost(): void {
    const lost = this.#now() - LOST_MS
    while (this.#sent[0] && this.#sent[0].sentAt <= lost) this.#leaveFlight(this.#sent[0])
  }

  /** Stops counting a batch as in flight. Returns false if it was not counted any more, as it was lost. */
  #leaveFlight(batch: SentBatch): boolean {
    const place = this.#sent.indexOf(batch)
    if (place < 0) return false
    this.#sent.splice(place, 1)
    this.#callsInFlight -= batch.size
    if (batch.takesRoom) this.#batchesInFlight--
    return true
  }

  /**
   * Sends the gathered calls, without those whose callers have given up: as one batch where the server takes several keys in a call.
   * In a Cluster only calls of one hash tag, whose keys lie in one slot, go as one batch, and each other call by itself. Batches
   * there take no room: a node that does not answer must not hold up calls to the others.
   */
  #send(gathered: ScriptCall[], tag = ''): void {
    const calls = rejectAbandoned(gathered)
    if (calls.length === 0) return
    calls.forEach(noteSent)
    const { takesManyKeys } = this.runner
    if (takesManyKeys || tag !== '') return this.#sendBatch(calls, takesManyKeys)
    for (const call of calls) this.#sendBatch([call], false)
  }

  /**
   * Sends the gathered calls as one script call. `takesRoom` says whether this batch counts against the bound of batches in flight.
   * If Redis refuses it because its keys lie in several slots of a Cluster, or a slot is being moved, nothing was carried out: its
   * calls are sent again, one by one. Any other failure fails them all.
   */
  #sendBatch(gathered: ScriptCall[], takesRoom: boolean): void {
    const { calls, keys, args } = packBatch(gathered)
    let size = keys.length // of equal calls, which are sent as one, each counts; of a call on several keys, each key
    for (const { duplicates } of calls) if (duplicates) size += duplicates.length
    const batch: SentBatch = {
      size,
      sentAt: this.#now(),
      takesRoom,
      answered: (replies) => {
        this.#noteReturned(batch)
        settleAll(calls, replies)
      },
      failed: (error) => {
        this.#noteReturned(batch)
        const areApart = calls.length > 1 && this.script && isApart((error as Error).cause)
        if (areApart) for (const call of rejectAbandoned(gathered)) this.#sendBatch([call], false)
        else for (const call of calls) failAll(call, error)
      },
    }
    this.#sent.push(batch)
    this.#callsInFlight += size
    if (takesRoom) this.#batchesInFlight++
    this.lastUse = batch.sentAt
    this.runner.runAll(this.script!, keys, args, batch)
  }

  /**
   * Notes that the calls of a batch were answered or failed, and sends calls that wait for the room that the batch had in flight.
   * Its callers usually ask again in this turn of the event loop, so its calls count as `#answeredInTurn` until the turn ends, and
   * make the next batch larger; not so a call that was sent alone. Does nothing for a batch that was lost: it had no outcome for a
   * minute, and its room went to others then.
   */
  #noteReturned(batch: SentBatch): void {
    const wasInFlight = this.#leaveFlight(batch)
    if (!wasInFlight) return
    if (!this.#isFlushDue && this.#waiting.size > 0) this.#flushAll()
    const wasAlone = batch.size < LEAST_BATCH
    if (wasAlone) return
    this.#answeredInTurn += batch.size
    this.#readySize = this.#bestBatchSize()
    this.#flushLater()
  }
}

/** A batch in flight, of `size` calls. `takesRoom` says whether it counts against the bound of batches. */
interface SentBatch extends Receiver<Replies> {
  readonly size: number
  readonly sentAt: number
  readonly takesRoom: boolean
}

/** With fewer calls than this in flight, a call is sent immediately. */
const FEW_CALLS = 10
/** So many pending calls are divided into four batches, which keeps this process and Redis busy; more into two, cheaper, ones. */
const MANY_CALLS = 64
/** The fewest calls that make a batch. */
const LEAST_BATCH = 2
/** Enough to keep Redis and this process busy; calls that arrive beyond that fill later batches better. */
const MOST_BATCHES = 16
/** Where few callers were answered and many ask in the same turn, small batches do not take the room of all that follow. */
const MOST_BEFORE_TURN_END = 12
const LOST_MS = 60_000

/** Whether the server refused a call because its keys lie in several slots, or some of them on another server. */
function isApart(cause: unknown): boolean {
  return isRefusedBy('CROSSSLOT', cause) || isRefusedBy('TRYAGAIN', cause)
}
