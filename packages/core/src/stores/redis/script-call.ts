import type { Caller } from '../store.js'
import type { PackedReply } from './script/wire.js'

/** One call of a script on one key, for one caller. */
export interface ScriptCall {
  /** The beginning of `key`, and the key that was passed to the limiter; together they are as unique. */
  readonly keyspace: string
  readonly callerKey: string
  /** The key in Redis. */
  readonly key: string
  /** The hash tag in `key`: keys of one tag lie in one slot of a Cluster. Empty if it has none. */
  readonly tag: string
  /** The keys in place of `key`, of a call on several. */
  readonly keys?: readonly string[]
  /** Its share of Redis's time: 1, or its cost on a log, which writes each unit. */
  readonly units: number
  readonly caller: Caller | undefined
  /** Later calls of the batch that are equal to this one. */
  duplicates: ScriptCall[] | undefined
  /** Whether `other` has the same argument, so that the two can share it, and be counted as one where the keys are equal. */
  sharesArgument(other: ScriptCall): boolean
  /** The script's argument for this call made `times` times in a row. */
  argument(times: number): Buffer
  /** Resolves this call and the equal ones with the script's reply. */
  answer(reply: Buffer): void
  /** The same where the reply is packed with those of other keys. */
  answerPlain(reply: PackedReply): void
  /** Rejects this call alone. */
  fail(error: unknown): void
}
