import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import type { ScriptCall } from './script-call.js'

/** Calls that will be sent as one script call. A key occurs once; calls on it that differ go into later batches, in order. */
export class Batch {
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
export function gather(call: ScriptCall, waiting: Batch[]): void {
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
export const MOST_CALLS = 128
