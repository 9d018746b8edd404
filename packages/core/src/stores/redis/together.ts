import type { Buffer } from 'node:buffer' // the global is a getter
import type { StoreError } from '../../values/errors.js'
import type { Caller, Part, Report, Together, WholeReceiver } from '../store.js'
import { isRefusedBy, outsideAt } from './clients/failure.js'
import type { GroupCommit } from './group-commit.js'
import type { ScriptCall } from './script-call.js'
import { redisKey } from './key.js'
import { areEqualConsumes, nonce } from './keyspace.js'
import type { RedisKeyspace, WholePart } from './keyspace.js'
import type { ScriptList } from './script/compose.js'
import { hasHealed, type NumberReader, packWhole, REDIS_TIME, unpackAnswer } from './script/wire.js'

/** Returns the group that sends calls on several keys whose parts have any of these lists. */
export type GroupFor = (id: string, lists: readonly ScriptList[], report: Report) => GroupCommit

/**
 * Decides calls on several keys of one Redis server, each by one script call. A program is such a script: it knows some lists of
 * policies, which a call names by number. Callers may choose which of their keys go together, in any order, and Redis keeps each
 * script. So a call takes the first program that knows its lists. One is made only if there is none, and from the ninth on it knows
 * all lists that were met.
 */
export class RedisTogether implements Together {
  readonly program = this
  readonly #programs: Program[] = []
  /** The lists that the next program knows, by id. */
  #met = new Map<string, ScriptList>()
  /** The lists of the call before, in their order, with their program and their numbers in it: most calls have the same. */
  #ids: readonly string[] = []
  #program: Program | undefined
  #numbers: readonly number[] = []
  #isFull = false

  constructor(private readonly groupFor: GroupFor) {}

  /** Finds or makes a program for calls on keys of these keyspaces. If no more may be made, returns false, and warns once. */
  prepare(keyspaces: readonly RedisKeyspace[]): boolean {
    if (this.#findOrMake(keyspaces)) return true
    if (!this.#isFull) keyspaces[0]!.options.report({ event: 'warning', ...PROGRAMS })
    this.#isFull = true
    return false
  }

  /**
   * Has the group of the call's program send it, by itself or in a batch of such calls; the script charges all of its keys or none.
   * `given` has a part for each key, and `prepare` was called for their keyspaces. `receiver` gets the answers, one a part.
   */
  decide(given: readonly Part<RedisKeyspace>[], receiver: WholeReceiver, caller?: Caller): undefined {
    const { id, lists } = this.#findOrMake(given.map(({ keyspace }) => keyspace))!
    const parts = given.map((part, i) => part.keyspace.partOf(part, this.#numbers[i]!))
    const group = this.groupFor(id, lists, given[0]!.keyspace.options.report)
    group.add(new WholeCall(group, parts, receiver, caller))
  }

  /**
   * Returns the first program (a script for calls on several keys) that knows the lists of policies of these keyspaces, or else a new
   * one; undefined if there are MOST_PROGRAMS. Keeps it for the next call, as most calls have the same lists, with the number that each
   * list has in it (`#numbers`).
   */
  #findOrMake(keyspaces: readonly RedisKeyspace[]): Program | undefined {
    let isSame = this.#ids.length === keyspaces.length
    for (let i = 0; isSame && i < keyspaces.length; i++)
      isSame = keyspaces[i]!.options.listId === this.#ids[i]
    if (isSame) return this.#program
    this.#ids = keyspaces.map(({ options }) => options.listId)
    this.#program =
      this.#programs.find(({ numbers }) => this.#ids.every((id) => numbers.has(id))) ?? this.#make(keyspaces)
    this.#numbers = this.#ids.map((id) => this.#program?.numbers.get(id) ?? 0)
    return this.#program
  }

  /**
   * Makes a program that knows the lists of these keyspaces; undefined if there are MOST_PROGRAMS. The first eight know no other
   * lists, as that is fastest. A later one knows all lists that were met; if these are too many, all are forgotten but its own.
   */
  #make(keyspaces: readonly RedisKeyspace[]): Program | undefined {
    if (this.#programs.length >= MOST_PROGRAMS) return undefined
    const own = new Map(
      keyspaces.map(({ options, policies, penalty, reserves }) => [
        options.listId,
        { policies, penalty, reserves },
      ]),
    )
    const met = new Map([...this.#met, ...own])
    this.#met = met.size > MOST_LISTS ? own : met
    const program = new Program(this.#programs.length < OWN_PROGRAMS ? own : this.#met)
    this.#programs.push(program)
    return program
  }
}

/** Lists of policies that one script knows. Sorted, so that processes that have met the same lists have the same script. */
class Program {
  readonly id: string
  readonly lists: readonly ScriptList[]
  /** The number of each list in the script, from 1, by its id. */
  readonly numbers: ReadonlyMap<string, number>

  /**
   * Describes the script for calls on several keys whose policies are in these `lists`, each by its id. The `id` of the script names
   * all of them, and `numbers` has the place of each in the script, from 1. They are sorted, so that all processes that know the same
   * lists have the same script.
   */
  constructor(lists: ReadonlyMap<string, ScriptList>) {
    const ids = [...lists.keys()].toSorted()
    this.id = ['together', ...ids].join('\n')
    this.lists = ids.map((id) => lists.get(id)!)
    this.numbers = new Map(ids.map((id, i) => [id, i + 1]))
  }
}

/** Programs of a store that know the lists of one call each. */
const OWN_PROGRAMS = 8
/** Programs of a store. Redis before 7.4 keeps the script of each until SCRIPT FLUSH. */
const MOST_PROGRAMS = 20
/** Lists that a program knows. */
const MOST_LISTS = 32

const PROGRAMS = {
  code: 'PROGRAMS_FULL',
  message:
    `calls on several keys have brought more than ${MOST_PROGRAMS} sets of lists of policies: further ones are decided ` +
    'in two steps, as across the slots of a Cluster',
}

/** A call on several keys, each of which is charged, or none. It gets the answers of its parts, in their order. */
class WholeCall implements ScriptCall {
  readonly keyspace = ''
  /** Unlike that of any other call: calls on the same keys may share a batch, which decides them one after the other. */
  readonly callerKey = `${++calls}`
  readonly tag = ''
  readonly keys: readonly string[]
  readonly duplicates = undefined

  /**
   * Makes a call on several keys, one for each of its `parts`, which the script of `group` decides in one step. `receiver` gets the
   * answers. `keys` are the names that the keys have in Redis. The `caller` may give up before the call is sent.
   */
  constructor(
    private readonly group: GroupCommit,
    readonly parts: readonly WholePart[],
    readonly receiver: WholeReceiver,
    readonly caller: Caller | undefined,
  ) {
    this.keys = parts.map(({ keyspace: { options }, key }) =>
      redisKey(options.keyspace, key, options.tagOf?.(key)),
    )
  }

  /** The sum of what its parts take of Redis's time: 1 each, or the cost on a sliding log, which writes an entry for each unit. */
  get units(): number {
    return this.parts.reduce((sum, { units }) => sum + units, 0)
  }

  /**
   * Whether the other call can be decided by this one's argument, so that it is sent once: each part (one part a key) has the
   * same list, cost and limits, and both are enforced or both are not.
   */
  sharesArgument({ parts }: WholeCall): boolean {
    if (parts.length !== this.parts.length) return false
    return this.parts.every(({ list, request, enforce }, i) => {
      const other = parts[i]!
      return list === other.list && enforce === other.enforce && areEqualConsumes(request, other.request)
    })
  }

  /** Adds its keys, and the numbers of all its parts as the argument. */
  addTo(keys: string[], args?: Buffer[]): void {
    keys.push(...this.keys)
    const { clock } = this.parts[0]!.keyspace.options
    args?.push(packWhole(this.parts, clock?.() ?? REDIS_TIME, nonce))
  }

  /**
   * Gives the receiver the answers in a reply to this call alone, which comes unless all of its parts passed at once. For each part
   * the reply has the length of the answer in bytes, and then the answer. A part whose state was unreadable, and was discarded, is
   * reported as healed.
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

  /** Gives the receiver the next answers, one a part, in the reply that is shared by all calls of the batch that passed at once. */
  answerPlain(reply: NumberReader): void {
    this.receiver.answered(this.parts.map(({ request }) => reply.passed(request.policies.length)))
  }

  /**
   * Fails the call, with two exceptions, in which nothing was carried out. If the boundaries of its calendars were too far from
   * Redis's clock (`outsideAt`), it is sent once more. If its keys lie in several slots of a Cluster (CROSSSLOT), which a proxy may
   * have hidden, the receiver gets undefined, and then has the parts decided one by one.
   */
  fail(error: unknown): void {
    const { group, receiver, caller } = this
    const around = outsideAt(error)
    if (around !== undefined) {
      const parts = this.parts.map((part) => ({ ...part, request: { ...part.request, around } }))
      group.add(new WholeCall(group, parts, receiver, caller))
    } else if (isRefusedBy('CROSSSLOT', (error as StoreError).cause)) receiver.answered(undefined)
    else receiver.failed(error)
  }
}

let calls = 0
