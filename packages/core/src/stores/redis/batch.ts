import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import { failAll, type ScriptCall } from './script-call.js'
import type { Replies } from './script/runner.js'

/** Calls that will be sent as one script call. A key occurs once; calls on it that differ go into later batches, in order. */
export class Batch {
  /** By keyspace and caller's key, as texts that are put together take longer to look up. */
  readonly #byKeyspace = new Map<string, Map<string, ScriptCall>>()
  /** The first call of each key, which holds the equal ones. */
  readonly calls: ScriptCall[] = []
  keys = 0
  /** Number of calls, equal ones included; one on several keys counts as so many. */
  size = 0
  /** On logs, which write an entry for each; a single call may have as many as a batch. */
  #units = 0

  /** Whether the batch has as many keys, calls or entries of logs as one script call may have, since others wait for it. */
  get isFull(): boolean {
    return this.keys >= MOST_KEYS || this.size >= MOST_CALLS || this.#units >= MOST_ENTRIES
  }

  /** Whether a call on the same key is in the batch already. */
  has({ keyspace, callerKey }: ScriptCall): boolean {
    return this.#byKeyspace.get(keyspace)?.has(callerKey) ?? false
  }

  /**
   * Adds a call to those that are sent together, and returns true. Returns false if there is no room, or if a different call on its key
   * is in the batch. An equal call on its key becomes a duplicate of that call: the script then makes the call several times. `units`
   * bound the time that Redis takes for a batch, `keys` and `size` its keys and calls, a call on several keys counting once for each.
   * A call alone is never too large.
   */
  add(call: ScriptCall): boolean {
    const isEmpty = this.size === 0
    if (!isEmpty && (this.size >= MOST_CALLS || this.#units + call.units > MOST_ENTRIES)) return false
    let callsByKey = this.#byKeyspace.get(call.keyspace)
    const onSameKey = callsByKey?.get(call.callerKey)
    if (onSameKey === undefined) {
      const keys = call.keys?.length ?? 1
      if (!isEmpty && this.keys + keys > MOST_KEYS) return false
      this.keys += keys
      this.size += keys
      if (!callsByKey) this.#byKeyspace.set(call.keyspace, (callsByKey = new Map()))
      callsByKey.set(call.callerKey, call)
      this.calls.push(call)
    } else {
      if (!onSameKey.sharesArgument(call)) return false
      if (onSameKey.duplicates) onSameKey.duplicates.push(call)
      else onSameKey.lead!([call])
      this.size++
    }
    this.#units += call.units
    return true
  }
}

/**
 * Puts a call into the first of the waiting batches (oldest first) that has room, or into a new one. Calls on a key keep their
 * order, so the search begins at the last batch that has its key, and at the first batch if none has.
 */
export function gather(call: ScriptCall, waiting: Batch[]): void {
  let i = waiting.length - 1
  while (i > 0 && !waiting[i]!.has(call)) i--
  for (i = Math.max(i, 0); i < waiting.length; i++) {
    const isAdded = waiting[i]!.add(call)
    if (isAdded) return
  }
  const batch = new Batch()
  batch.add(call)
  waiting.push(batch)
}

/**
 * Most keys and calls in a batch, because a script blocks other clients while it runs. An equal call takes an eighth of the
 * time of another key, but larger batches would leave no second one to read while Redis decides.
 */
const MOST_KEYS = 64
export const MOST_CALLS = 128

/**
 * Returns what a batch is sent as, the keys and the arguments of the script, and its calls in the order of the replies. All are calls
 * on one key each, or all on several.
 */
export function packBatch(gathered: readonly ScriptCall[]) {
  const keys: string[] = []
  const args: Buffer[] = []
  let calls = gathered
  if (gathered.length === 1) gathered[0]!.addTo(keys, args)
  else if (gathered[0]!.keys) addWholes(gathered, keys, args)
  else calls = addSharing(gathered, keys, args)
  return { calls, keys, args }
}

/**
 * Adds the keys and arguments of calls on several keys each, in their order, as they may have keys in common. An empty argument stands
 * for that of the call before, and calls beyond the last argument share it. An empty one at the end says that some keys are in common.
 */
function addWholes(calls: readonly ScriptCall[], keys: string[], args: Buffer[]): void {
  for (const [i, call] of calls.entries()) {
    const shares = i > 0 && call.sharesArgument(calls[i - 1]!)
    call.addTo(keys, shares ? undefined : args)
    if (shares) args.push(Buffer.alloc(0))
  }
  while (args.at(-1)!.length === 0) args.pop()
  const areInCommon = new Set(keys).size < keys.length
  if (areInCommon) args.push(Buffer.alloc(0))
}

/**
 * Adds calls on one key each to `keys` and `args`, and returns the calls in the order in which their keys stand there. First come
 * calls with an argument of their own, then those that share the argument of `common` (the same cost and limits), usually nearly all,
 * which is written once: the script uses the last argument for all remaining keys. A call that stands for several equal ones (its
 * duplicates) has an argument of its own.
 */
function addSharing(calls: readonly ScriptCall[], keys: string[], args: Buffer[]): readonly ScriptCall[] {
  const common = calls.find(({ duplicates }) => !duplicates)
  const own: ScriptCall[] = []
  const sharing: ScriptCall[] = []
  for (const call of calls) {
    const shares = call === common || (common && !call.duplicates && call.sharesArgument(common))
    ;(shares ? sharing : own).push(call)
  }
  for (const call of own) call.addTo(keys, args)
  for (const call of sharing) call.addTo(keys, call === common ? args : undefined)
  return own.length > 0 ? [...own, ...sharing] : calls
}

/**
 * Gives each call of a batch its answer: the next one in the packed reply, which all calls share. A mark in its place there says
 * that the call has a reply of its own, the next of `own`, which may be an error. A reply that makes no sense fails its call alone.
 */
export function settleAll(calls: readonly ScriptCall[], { packed, own }: Replies): void {
  let next = 0
  for (const call of calls) {
    try {
      if (packed && !packed.passMark()) call.answerPlain(packed)
      else {
        const reply = own[next++]!
        if (reply instanceof Error) failAll(call, reply)
        else call.answer(reply)
      }
    } catch (error) {
      failAll(call, error)
    }
  }
}
