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
   * Puts a call on several keys into the next batch of those with the same lists of policies, which one script call decides. The
   * answers to the parts go to `receiver`.
   */
  decide(given: readonly Part[], receiver: WholeReceiver, caller?: Caller): undefined {
    const parts = given.map((part) => (part.keyspace as RedisKeyspace).partOf(part))
    const group = this.groupFor(this.#idOf(parts), () => listsOf(parts), parts[0]!.keyspace.options.report)
    group.add(new WholeCall(parts, receiver, caller))
  }

  /** The id of the script for the lists of these parts. To put it together and to look that up takes longer than to compare. */
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
 * Returns the list of policies and penalty of each part. Parts of equal lists get the same object, so that the script has the
 * code for it once.
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

  /** A call on the keys of these parts, whose answers go to `receiver`. */
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
   * Whether the other call can be decided by this one's argument: each part has the same cost and limits, and is enforced or not
   * alike. Both are of one script, so their lists are the same.
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

  /** Passes on the answers of the parts from a reply of its own, in which each stands behind the number of its bytes. */
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

  /** Takes the next answers, one for each part, out of a reply that it shares with other calls which passed at once. */
  answerPlain(reply: PackedReply): void {
    this.receiver.answered(this.parts.map(({ request }) => reply.next(request.policies.length)))
  }

  /**
   * Fails the call. A server that is in a Cluster, or a proxy before one, refuses keys of several slots: then nothing was
   * carried out, and undefined tells the receiver to decide the parts by themselves.
   */
  fail(error: unknown): void {
    if (isRefusedBy('CROSSSLOT', (error as StoreError).cause)) this.receiver.answered(undefined)
    else this.receiver.failed(error)
  }
}

let calls = 0
