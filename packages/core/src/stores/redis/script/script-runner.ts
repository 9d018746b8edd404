import { Buffer } from 'node:buffer' // the global is a getter
import { createHash } from 'node:crypto'
import type { Policy } from '../../../algorithms/contract/policy.js'
import type { Penalty } from '../../penalty.js'
import { isCrossSlot, isNoScript, storeError } from '../clients/failure.js'
import type { Bytes, RedisConnection, RedisKey, ScriptReply } from '../redis-connection.js'
import type { Replies } from '../script-call.js'
import type { Receiver } from '../../store.js'
import { GroupCommit, type Transport } from '../group-commit.js'
import { composeScript } from './compose.js'
import { PackedReply, unpackFailure } from './wire.js'

/**
 * Runs scripts by their SHA-1. The text is sent until a server has run it, and again after NOSCRIPT: scripts vanish on
 * restart, failover and SCRIPT FLUSH, and each node of a Cluster has its own. After NOSCRIPT nothing was executed, so
 * nothing is repeated. Sending the text first keeps calls in flight in their order: a call that is sent again would come
 * after later ones if another process had loaded the script in between.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  #onFirstReply: (() => void) | undefined
  readonly #shas = new Map<string, string>()
  /** Scripts that a server has run for this process and that were not lost since. */
  readonly #known = new Set<string>()
  #takesManyKeys: boolean

  /** Calls `onFirstReply` after the first reply. */
  constructor(connection: RedisConnection, onFirstReply: () => void) {
    this.#connection = connection
    this.#onFirstReply = onFirstReply
    this.#takesManyKeys = !connection.isCluster
  }

  /** Sends calls of one script. A call may have several keys, except in a Cluster or once a server has refused that. */
  transport(script: string): Transport {
    return {
      takesManyKeys: () => this.#takesManyKeys,
      inOneWrite: (send) => (this.#connection.inOneWrite ? this.#connection.inOneWrite(send) : send()),
      send: (keys, args, receiver) => this.#runAll(script, keys, args, receiver),
    }
  }

  /** Forgets a script. If it is run again, its text is sent first. */
  forget(script: string): void {
    this.#shas.delete(script)
    this.#known.delete(script)
  }

  /**
   * Runs a script once on one key.
   * @throws {StoreError} with the client's error as its cause.
   */
  run(script: string, key: RedisKey, argument: Bytes): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      // With a single key, an error fails the whole call.
      this.#runAll(script, [key], [argument], {
        answered: ({ own }) => resolve(own[0] as Buffer),
        failed: reject,
      })
    })
  }

  #runAll(
    script: string,
    keys: readonly RedisKey[],
    args: readonly Bytes[],
    receiver: Receiver<Replies>,
  ): void {
    const isKnown = this.#known.has(script)
    let sent: Promise<ScriptReply>
    try {
      sent = isKnown
        ? this.#connection.evalsha(this.#shaOf(script), keys, args)
        : this.#connection.eval(script, keys, args)
    } catch (error) {
      sent = Promise.reject(error)
    }
    sent.then(
      (reply) => {
        if (!isKnown) this.#known.add(script)
        let replies: Replies
        try {
          replies = repliesOf(reply)
        } catch (error) {
          return receiver.failed(storeError(error))
        }
        this.#onFirstReply?.()
        this.#onFirstReply = undefined
        receiver.answered(replies)
      },
      (error: unknown) => {
        if (isKnown && isNoScript(error)) {
          this.#known.delete(script)
          return this.#runAll(script, keys, args, receiver)
        }
        if (isCrossSlot(error)) this.#takesManyKeys = false
        receiver.failed(storeError(error))
      },
    )
  }

  #shaOf(script: string): string {
    let sha = this.#shas.get(script)
    if (!sha) this.#shas.set(script, (sha = createHash('sha1').update(script).digest('hex')))
    return sha
  }
}

/** A list begins with the packed reply. */
function repliesOf(reply: ScriptReply): Replies {
  if (reply instanceof Uint8Array) return { packed: undefined, own: [asBuffer(reply)] }
  const [packed, ...own] = reply
  return { packed: new PackedReply(packed!), own: own.map(answerOrError) }
}

function answerOrError(reply: Bytes): Buffer | Error {
  const buffer = asBuffer(reply)
  const failure = unpackFailure(buffer)
  return failure === undefined ? buffer : storeError(new Error(failure))
}

function asBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export interface GroupsOptions {
  readonly gathers: boolean
  /** Most lists of shapes, each penalty counted, whose scripts are held, not counting those with calls in flight. */
  readonly most: number
}

/** The scripts of a store by their shapes and penalty, each with its calls. Beyond `most`, the least recently used one is dropped. */
export class Groups {
  readonly #runner: ScriptRunner
  readonly #options: GroupsOptions
  readonly #byShapes = new Map<string, Held>()
  #uses = 0
  #isClosed = false

  constructor(runner: ScriptRunner, options: GroupsOptions) {
    this.#runner = runner
    this.#options = options
  }

  get size(): number {
    return this.#byShapes.size
  }

  /** The group that sends the calls of the script for these shapes and this penalty, which `id` tells apart from others. */
  of(id: string, policies: readonly Policy[], penalty?: Penalty): GroupCommit {
    let held = this.#byShapes.get(id)
    if (!held) {
      const script = composeScript(policies, penalty)
      const group = new GroupCommit(this.#runner.transport(script), { gathers: this.#options.gathers })
      if (this.#isClosed) group.close()
      this.#byShapes.set(id, (held = { script, group, used: 0 }))
    }
    held.used = ++this.#uses
    return held.group
  }

  /** Drops idle scripts while there are too many, but not the one used last. Returns whether one was dropped. */
  trim(): boolean {
    const { size } = this.#byShapes
    while (this.#byShapes.size > this.#options.most) {
      let oldest: string | undefined
      let used = this.#uses
      for (const [shapes, held] of this.#byShapes) {
        if (held.used >= used || !held.group.isIdle) continue
        oldest = shapes
        used = held.used
      }
      if (oldest === undefined) break
      this.#runner.forget(this.#byShapes.get(oldest)!.script)
      this.#byShapes.delete(oldest)
    }
    return this.#byShapes.size < size
  }

  close(): void {
    this.#isClosed = true
    for (const { group } of this.#byShapes.values()) group.close()
  }
}

interface Held {
  readonly script: string
  readonly group: GroupCommit
  used: number
}
