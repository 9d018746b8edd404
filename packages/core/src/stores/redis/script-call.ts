import { StoreError } from '../../values/errors.js'
import type { Caller } from '../store.js'
import type { NumberReader } from './script/wire.js'

/** One call of a script on one key, for one caller. */
export interface ScriptCall {
  /** The beginning of `key`, and the key that was passed to the limiter; together they are as unique. */
  readonly keyspace: string
  readonly callerKey: string
  /** The hash tag in its key in Redis: keys of one tag lie in one slot of a Cluster. Empty if it has none. */
  readonly tag: string
  /** The keys in Redis of a call on several. */
  readonly keys?: readonly string[]
  /** Its share of Redis's time: 1, or its cost on a log, which writes each unit. */
  readonly units: number
  readonly caller: Caller | undefined
  /** Later calls of the batch that are equal to this one. */
  readonly duplicates: ScriptCall[] | undefined
  /** Has equal calls travel with it as its `duplicates`. A call on several keys has none. */
  lead?(duplicates: ScriptCall[]): void
  /** Whether `other` has the same argument, so that the two can share it, and be counted as one where the keys are equal. */
  sharesArgument(other: ScriptCall): boolean
  /** Adds its keys in Redis to those of a batch, and to `args` the script's argument for it and its duplicates. */
  addTo(keys: string[], args?: Buffer[]): void
  /** Resolves this call and the equal ones with the script's reply. */
  answer(reply: Buffer): void
  /** The same where the reply is packed with those of other keys. */
  answerPlain(reply: NumberReader): void
  /** Rejects this call alone. */
  fail(error: unknown): void
}

/** Notes that a call and its duplicates, which have waited, are sent: from now on it may have been carried out if it fails. */
export function noteSent({ caller, duplicates }: ScriptCall): void {
  caller?.queued?.(false)
  duplicates?.forEach(noteSent)
}

/** Fails a call and its duplicates, the equal calls on the same key that travel with it. */
export function failAll(call: ScriptCall, error: unknown): void {
  for (const each of [call, ...(call.duplicates ?? [])]) {
    try {
      each.fail(error)
    } catch (closed) {
      each.fail(closed) // it was to be sent once more, and the store is closed
    }
  }
}

/**
 * Rejects the calls whose callers have given up, with an error that says that they were not sent, and returns the others. If the
 * caller of a call is gone but not all callers of its duplicates (equal calls on the same key that travel with it), the first of
 * these duplicates takes the place of the call.
 */
export function rejectAbandoned(calls: ScriptCall[]): ScriptCall[] {
  if (!calls.some((call) => isGone(call) || call.duplicates?.some(isGone))) return calls
  const gaveUp = new StoreError('STORE_TIMEOUT', 'the caller gave up before it was sent', { sent: false })
  return calls.flatMap((call) => {
    const all = [call, ...(call.duplicates ?? [])]
    for (const each of all) if (isGone(each)) each.fail(gaveUp)
    const [first, ...duplicates] = all.filter((each) => !isGone(each))
    first?.lead?.(duplicates)
    return first ?? []
  })
}

/** Whether the caller has stopped waiting, so that the call need not be sent. */
function isGone({ caller }: ScriptCall): boolean {
  return caller?.gone === true
}
