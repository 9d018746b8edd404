import { StoreError } from '../../values/errors.js'
import { Batch } from './batch.js'
import { type Call, failAll, prepared, settle, stillWaitedFor } from './calls.js'
import type { Bytes } from './client.js'

/** The way to Redis of one script. */
export interface Transport {
  /** Whether calls for several keys may travel as one. */
  takesManyKeys(): boolean
  /** With fewer arguments than keys the last ones share an argument. Gives the reply for each key, or why there is none for it alone. Rejects where there is none for any. */
  send(keys: readonly string[], args: readonly Bytes[]): Promise<readonly (Buffer | Error)[]>
}

export interface GroupCommitOptions {
  /** false: every call is sent by itself, at once. */
  readonly gathers?: boolean
  /** Runs a task once everything that has arrived is read; default `setImmediate`. */
  readonly later?: (task: () => void) => void
}

/**
 * Sends calls of one script to Redis, many of them as one: that takes a fraction of the time, there and here. A call is
 * sent at once while few are in flight, so that nobody waits for company. From then on those that arrive within one turn
 * of the event loop gather, while several batches are in flight, so that Redis and this process work at the same time.
 * Only when those are too many do calls wait for one to come back.
 *
 * Calls of one key are carried out in the order in which they came. None is sent twice. One whose caller has given up is
 * not sent at all.
 */
export class GroupCommit {
  readonly #transport: Transport
  readonly #gathers: boolean
  readonly #later: (task: () => void) => void
  readonly #flush = (): void => this.#flushAll()
  /** Batches that wait, the oldest first. */
  #waiting: Batch[] = []
  #flushes = false
  #callsInFlight = 0
  #batchesInFlight = 0
  #closed = false

  constructor(transport: Transport, { gathers = true, later = setImmediate }: GroupCommitOptions = {}) {
    this.#transport = transport
    this.#gathers = gathers
    this.#later = later
  }

  /** Whether no call waits or is under way. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#callsInFlight === 0
  }

  add(call: Call): void {
    if (this.#closed) return call.fail(closed())
    const isAlone = this.#waiting.length === 0 && this.#callsInFlight < FEW_CALLS
    if (isAlone || !this.#gathers) return this.#send([call])
    if (call.caller) call.caller.unsent = true
    this.#gather(call)
    const isBusy = this.#batchesInFlight >= MOST_BATCHES
    if (!isBusy && this.#waiting[0]!.isFull) this.#send(this.#waiting.shift()!.calls())
    if (isBusy || this.#flushes || this.#waiting.length === 0) return
    this.#flushes = true
    this.#later(this.#flush)
  }

  /** Rejects what waits to be sent, and all later calls. */
  close(): void {
    this.#closed = true
    const waiting = this.#waiting
    this.#waiting = []
    for (const batch of waiting) for (const call of batch.calls()) failAll(call, closed())
  }

  /** Into the first batch that has room and is not before another one of the same key. */
  #gather(call: Call): void {
    const waiting = this.#waiting
    let i = waiting.length - 1
    while (i > 0 && !waiting[i]!.has(call.key)) i--
    for (i = Math.max(i, 0); i < waiting.length; i++) if (waiting[i]!.take(call)) return
    const batch = new Batch()
    batch.take(call)
    waiting.push(batch)
  }

  #flushAll(): void {
    this.#flushes = false
    const most = this.#partSize()
    while (this.#waiting.length > 0 && this.#batchesInFlight < MOST_BATCHES) {
      const calls = this.#waiting.shift()!.calls()
      const parts = Math.min(Math.ceil(calls.length / most), MOST_BATCHES - this.#batchesInFlight)
      const size = Math.ceil(calls.length / parts)
      for (let i = 0; i < calls.length; i += size) this.#send(calls.slice(i, i + size))
    }
  }

  /**
   * Keys of a batch, so that all calls that there are make several: while Redis decides one, this process reads what
   * came of another. In a single one they would take turns.
   */
  #partSize(): number {
    let calls = this.#callsInFlight
    for (const { size } of this.#waiting) calls += size
    return Math.max(LEAST_PART, Math.ceil(calls / PARTS))
  }

  #send(gathered: Call[]): void {
    const calls = stillWaitedFor(gathered)
    if (calls.length === 0) return
    if (this.#transport.takesManyKeys()) return this.#ask(calls, true)
    // Not counted as batches: a node of a Cluster that stands still must not hold up calls to others.
    for (const call of calls) this.#ask([call], false)
  }

  #ask(gathered: Call[], isBatch: boolean): void {
    const { calls, args } = prepared(gathered)
    const keys: string[] = []
    let callers = 0
    for (const call of calls) {
      keys.push(call.key)
      isSent(call)
      callers += call.alike ? 1 + call.alike.length : 1
    }
    this.#callsInFlight += callers
    if (isBatch) this.#batchesInFlight++
    this.#transport.send(keys, args).then(
      (replies) => {
        this.#isBack(callers, isBatch)
        for (let i = 0; i < calls.length; i++) settle(calls[i]!, replies[i]!)
      },
      (error: unknown) => {
        this.#isBack(callers, isBatch)
        const isRefused = calls.length > 1 && !this.#transport.takesManyKeys()
        if (isRefused) this.#send(gathered)
        else for (const call of calls) failAll(call, error)
      },
    )
  }

  #isBack(callers: number, isBatch: boolean): void {
    this.#callsInFlight -= callers
    if (isBatch) this.#batchesInFlight--
    if (!this.#flushes) this.#flushAll()
  }
}

function isSent({ caller, alike }: Call): void {
  if (caller) caller.unsent = false
  if (alike) for (const other of alike) isSent(other)
}

function closed(): StoreError {
  return new StoreError('CLOSED', 'the store is closed')
}

/** With fewer calls than this in flight none waits for company. */
const FEW_CALLS = 4

/** Into how many batches all calls are divided, unless these would hold fewer keys than a batch is worth. */
const PARTS = 3
const LEAST_PART = 8

/** Enough that Redis and this process always have something to do; those that come meanwhile fill a batch better. */
const MOST_BATCHES = 16
