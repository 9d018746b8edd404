import type { StoreError } from '../../values/errors.js'
import type { Answer, Caller, Part, Receiver, Report, Together } from '../store.js'
import { isRefusedBy } from './clients/failure.js'
import type { GroupCommit, ScriptCall } from './group-commit.js'
import { areAlike, nonce, type RedisKeyspace, type RedisPart } from './keyspace.js'
import type { ScriptList } from './script/compose.js'
import { type PackedReply, packRequest, packWhole, unpackWhole } from './script/wire.js'

/** Returns what sends calls on several keys, under these lists. */
export type GroupFor = (id: string, lists: readonly ScriptList[], report: Report) => GroupCommit

/** Decides parts in one Redis server by one script call. */
export class RedisTogether implements Together {
  readonly program = this

  constructor(private readonly groupFor: GroupFor) {}

  async decide(parts: readonly Part[], caller?: Caller): Promise<readonly Answer[] | undefined> {
    const opened = parts.map((part) => (part.keyspace as RedisKeyspace).part(part))
    const lists = new Map(opened.map(({ keyspace }) => [keyspace.listId, keyspace]))
    const ids = [...lists.keys()].toSorted()
    const shapes = ids.map((id) => lists.get(id)!)
    const group = this.groupFor(ids.join('\n'), shapes, opened[0]!.keyspace.report)
    try {
      return await new Promise((answered, failed) => {
        group.add(new WholeCall(opened, ids, { answered, failed }, caller))
      })
    } catch (error) {
      // A server that is in a Cluster, or a proxy before one: nothing was carried out.
      if (isRefusedBy('CROSSSLOT', (error as StoreError).cause)) return undefined
      throw error
    }
  }
}

/** A call on several keys, each of which is charged, or none. */
class WholeCall implements ScriptCall {
  readonly keyspace = ''
  /** Unlike that of any other call: calls on the same keys may share a batch, which decides them one after the other. */
  readonly callerKey = `${++calls}`
  readonly key = ''
  readonly keys: readonly string[]
  readonly units: number
  readonly duplicates = undefined

  /** `lists` are the ids of the lists that the script has. */
  constructor(
    readonly parts: readonly RedisPart[],
    readonly lists: readonly string[],
    readonly receiver: Receiver<readonly Answer[]>,
    readonly caller: Caller | undefined,
  ) {
    this.keys = parts.map(({ redisKey }) => redisKey)
    this.units = parts.reduce((sum, { units }) => sum + units, 0)
  }

  sharesArgument({ parts }: WholeCall): boolean {
    const isShared = (part: RedisPart, other: RedisPart): boolean =>
      part.keyspace.listId === other.keyspace.listId &&
      part.enforce === other.enforce &&
      areAlike(part.request, other.request)
    return parts.length === this.parts.length && parts.every((part, i) => isShared(part, this.parts[i]!))
  }

  argument(): Buffer {
    const parts = this.parts.map(({ keyspace, request, enforce }) => ({
      list: 1 + this.lists.indexOf(keyspace.listId),
      enforce,
      plain: packRequest({ ...request, slowest: undefined }, -1, nonce()),
      slowest: request.slowest ?? [],
    }))
    return packWhole(this.parts[0]!.keyspace.clock(), parts)
  }

  answer(reply: Buffer): void {
    this.receiver.answered(unpackWhole(reply, this.parts))
  }

  answerPlain(reply: PackedReply): void {
    this.receiver.answered(this.parts.map(({ keyspace }) => reply.next(keyspace.policies.length)))
  }

  fail(error: unknown): void {
    this.receiver.failed(error)
  }
}

let calls = 0
