import { Buffer } from 'node:buffer' // the global is a getter
import type { StoreError } from '../../values/errors.js'
import type { Answer, Caller, Part, Receiver, Report, Together } from '../store.js'
import { isRefusedBy } from './clients/failure.js'
import type { GroupCommit, ScriptCall } from './group-commit.js'
import { type KeyspaceCall, nonce, type RedisKeyspace } from './keyspace.js'
import type { ScriptList } from './script/compose.js'
import { type PackedReply, packed, packPart } from './script/wire.js'

/** Returns what sends calls on several keys, under these lists. */
export type GroupFor = (id: string, lists: readonly ScriptList[], report: Report) => GroupCommit

/** Decides parts in one Redis server by one script call. */
export class RedisTogether implements Together {
  readonly program = this

  constructor(private readonly groupFor: GroupFor) {}

  async decide(parts: readonly Part[], caller?: Caller): Promise<readonly Answer[] | undefined> {
    const lists = new Map<string, ScriptList>()
    for (const { keyspace } of parts) {
      const { listId, policies, penalty } = (keyspace as RedisKeyspace).options
      lists.set(listId, { policies, penalty })
    }
    const ids = [...lists.keys()].toSorted()
    const { report } = (parts[0]!.keyspace as RedisKeyspace).options
    const shapes = ids.map((id) => lists.get(id)!)
    try {
      return await new Promise((answered, failed) => {
        const call = new WholeCall(parts, ids, { answered, failed }, caller)
        this.groupFor(ids.join('\n'), shapes, report).add(call)
      })
    } catch (error) {
      // A server that is in a Cluster, or a proxy before one: nothing was carried out.
      if (isRefusedBy('CROSSSLOT', (error as StoreError).cause)) return undefined
      throw error
    }
  }
}

/** A call on several keys, each of which is charged, or none. It gets the answers of its parts, in their order. */
class WholeCall implements ScriptCall, Receiver<Answer> {
  readonly keyspace = ''
  /** Unlike that of any other call: calls on the same keys may share a batch, which decides them one after the other. */
  readonly callerKey = `${++calls}`
  readonly key = ''
  readonly keys: readonly string[]
  readonly units: number
  readonly duplicates = undefined
  readonly parts: readonly KeyspaceCall<Answer>[]
  readonly #answers: Answer[] = []

  /** `lists` are the ids of the lists that the script has. */
  constructor(
    readonly given: readonly Part[],
    readonly lists: readonly string[],
    readonly receiver: Receiver<readonly Answer[]>,
    readonly caller: Caller | undefined,
  ) {
    this.parts = given.map((part) => (part.keyspace as RedisKeyspace).part(part, this))
    this.keys = this.parts.map(({ key }) => key)
    this.units = this.parts.reduce((sum, { units }) => sum + units, 0)
  }

  sharesArgument({ given, parts }: WholeCall): boolean {
    const isShared = (part: KeyspaceCall<Answer>, i: number): boolean =>
      part.context.listId === parts[i]!.context.listId &&
      this.given[i]!.enforce === given[i]!.enforce &&
      part.sharesArgument(parts[i]!)
    return parts.length === this.parts.length && this.parts.every(isShared)
  }

  argument(): Buffer {
    const packedParts = this.parts.map(({ context, request }, i) =>
      packPart(1 + this.lists.indexOf(context.listId), this.given[i]!.enforce, request, nonce()),
    )
    return Buffer.concat([packed([this.parts[0]!.context.clock(), this.parts.length]), ...packedParts])
  }

  answer(reply: Buffer): void {
    let end = 0
    for (const part of this.parts) {
      const start = end + 8
      end = start + reply.readDoubleLE(end)
      part.answer(reply.subarray(start, end))
    }
    this.receiver.answered(this.#answers)
  }

  answerPlain(reply: PackedReply): void {
    for (const part of this.parts) part.answerPlain(reply)
    this.receiver.answered(this.#answers)
  }

  answered(answer: Answer): void {
    this.#answers.push(answer)
  }

  failed(error: unknown): void {
    this.receiver.failed(error)
  }

  fail(error: unknown): void {
    this.receiver.failed(error)
  }
}

let calls = 0
