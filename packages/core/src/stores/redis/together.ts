import type { Buffer } from 'node:buffer' // the global is a getter
import type { StoreError } from '../../values/errors.js'
import type { Caller, Part, Report, Together, WholeReceiver } from '../store.js'
import { isRefusedBy } from './clients/failure.js'
import type { GroupCommit } from './group-commit.js'
import type { ScriptCall } from './script-call.js'
import { areEqualConsumes, nonce, redisKey, type RedisKeyspace, type WholePart } from './keyspace.js'
import type { ScriptList } from './script/compose.js'
import { hasHealed, type PackedReply, packWhole, unpackAnswer } from './script/wire.js'

/** Returns what sends calls on several keys whose parts are of these lists. */
export type GroupFor = (id: string, lists: () => readonly ScriptList[], report: Report) => GroupCommit

/** Decides parts in one Redis server by one script call. */
export class RedisTogether implements Together {
  readonly program = this
  /** The latest ids of lists, and the id of their script: most calls of a process have the same. */
  #lists: readonly string[] = []
  #id = ''

  constructor(private readonly groupFor: GroupFor) {}

  /**
   * Puts a call on several keys, of which all are charged or none, into the next batch of its kind, to be decided by one script
   * call. A part is its share of one key. Calls whose parts have the same lists of policies, in the same order, have one script
   * and so one kind. The answers to the parts go to `receiver`.
   */
  decide(given: readonly Part[], receiver: WholeReceiver, caller?: Caller): undefined {
    const parts = given.map((part) => (part.keyspace as RedisKeyspace).partOf(part))
    const group = this.groupFor(this.#idOf(parts), () => listsOf(parts), parts[0]!.keyspace.options.report)
    group.add(new WholeCall(parts, receiver, caller))
  }

  /**
   * Returns the id of the script for the policies of these parts (one part a key), which is made of the ids of their lists, in
   * order. Most calls have the lists of the call before, and to compare these is faster than to put the id together and look it
   * up.
   */
  #idOf(parts: readonly WholePart[]): string {
    const lists = this.#lists
    let isSame = parts.length === lists.length
    for (let i = 0; isSame && i < lists.length; i++) isSame = parts[i]!.keyspace.options.listId === lists[i]
    if (!isSame) {
      this.#lists = parts.map(({ keyspace }) => keyspace.options.listId)
      this.#id = ['together', ...this.#lists].join('\n')
    }
    return this.#id
  }
}

/**
 * Returns for each part (one key of a call on several) its list of policies and penalty. Parts of equal lists get the same
 * object, so that the script has the code for them once.
 */
function listsOf(parts: readonly WholePart[]): readonly ScriptList[] {
  const lists = new Map(parts.map(({ keyspace: { options } }) => [options.listId, options]))
  return parts.map(({ keyspace }) => lists.get(keyspace.options.listId)!)
}

/** A call on several keys, each of which is charged, or none. It gets the answers of its parts, in their order. */
class WholeCall implements ScriptCall {
  readonly keyspace = ''
  /** Unlike that of any other call: calls on the same keys may share a batch, which decides them one after the other. */
  readonly callerKey = `${++calls}`
  readonly key = ''
  readonly tag = ''
  readonly keys: readonly string[]
  readonly duplicates = undefined

  /**
   * A call on the keys of these parts (one part a key), whose answers go to `receiver`. `caller` says whether somebody still
   * waits.
   */
  constructor(
    readonly parts: readonly WholePart[],
    readonly receiver: WholeReceiver,
    readonly caller: Caller | undefined,
  ) {
    this.keys = parts.map(({ keyspace: { options }, key }) =>
      redisKey(options.keyspace, key, options.tagOf(key)),
    )
  }

  /**
   * The sum of what its parts take of Redis's time: 1 each, but the cost of one on a sliding log, which writes an entry for each
   * unit.
   */
  get units(): number {
    return this.parts.reduce((sum, { units }) => sum + units, 0)
  }

  /**
   * Whether the other call can be decided by this one's argument, so that it is sent once: each part (one part a key) has the
   * same cost and limits, and both are enforced or both are not. The two have one script, so their lists are the same.
   */
  sharesArgument({ parts }: WholeCall): boolean {
    return this.parts.every(
      ({ request, enforce }, i) =>
        enforce === parts[i]!.enforce && areEqualConsumes(request, parts[i]!.request),
    )
  }

  /** The script's argument for this call: the numbers of all its parts. */
  argument(): Buffer {
    return packWhole(this.parts, this.parts[0]!.keyspace.options.clock(), nonce)
  }

  /**
   * Reads Redis's reply to this call alone, which comes if not all of its parts passed the script's short way (`answerPlain`). It
   * has an answer for each part, the share of one key, behind the number of that answer's bytes. The receiver gets them all. A
   * part whose state was unreadable, and was discarded, is reported as healed.
   */
  answer(reply: Buffer): void {
    let end = 0
    const answers = this.parts.map(({ keyspace, key, request }) => {
      const start = end + 8
      end = start + reply.readDoubleLE(end)
      const own = reply.subarray(start, end)
      if (hasHealed(own)) keyspace.options.report({ event: 'healed', key })
      return unpackAnswer(own, request, key)
    })
    this.receiver.answered(answers)
  }

  /** Takes the next answers, one for each part, out of the reply that is shared by all calls of the batch that passed at once. */
  answerPlain(reply: PackedReply): void {
    this.receiver.answered(this.parts.map(({ request }) => reply.next(request.policies.length)))
  }

  /**
   * Fails the call. But if Redis has refused it because its keys lie in several slots of a Cluster (CROSSSLOT), which a proxy may
   * have hidden, nothing was carried out: the receiver gets undefined, upon which it has the parts decided one by one.
   */
  fail(error: unknown): void {
    if (isRefusedBy('CROSSSLOT', (error as StoreError).cause)) this.receiver.answered(undefined)
    else this.receiver.failed(error)
  }
}

let calls = 0
