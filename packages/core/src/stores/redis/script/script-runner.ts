import { Buffer } from 'node:buffer' // the global is a getter
import { createHash } from 'node:crypto'
import { isCrossSlot, isNoScript, storeError } from '../clients/failure.js'
import type { Bytes, RedisConnection, RedisKey, ScriptReply } from '../redis-connection.js'
import type { Replies } from '../script-call.js'
import type { Transport } from '../group-commit.js'
import { PackedReply } from './packed-reply.js'
import { unpackFailure } from './wire.js'

/**
 * Runs scripts by their SHA-1. The text is sent until a server has run it, and again after NOSCRIPT: scripts vanish on
 * restart, failover and SCRIPT FLUSH, and each node of a Cluster has its own. After NOSCRIPT nothing was executed, so
 * nothing is repeated. Sending the text first keeps calls in flight in their order: a call that is sent again would come
 * after later ones if another process had loaded the script in between.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  readonly #onReply: () => void
  readonly #shas = new Map<string, string>()
  /** Scripts that a server has run for this process and that were not lost since. */
  readonly #known = new Set<string>()
  #takesManyKeys: boolean

  /** Calls `onReply` after each reply. */
  constructor(connection: RedisConnection, onReply: () => void) {
    this.#connection = connection
    this.#onReply = onReply
    this.#takesManyKeys = !connection.isCluster
  }

  /** Sends calls of one script. A call may have several keys, except in a Cluster or once a server has refused that. */
  transport(script: string): Transport {
    return {
      takesManyKeys: () => this.#takesManyKeys,
      inOneWrite: (send) => (this.#connection.inOneWrite ? this.#connection.inOneWrite(send) : send()),
      send: (keys, args) => this.#runAll(script, keys, args),
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
  async run(script: string, key: RedisKey, argument: Bytes): Promise<Buffer> {
    const { own } = await this.#runAll(script, [key], [argument])
    return own[0] as Buffer // with a single key, an error rejects the whole call
  }

  async #runAll(script: string, keys: readonly RedisKey[], args: readonly Bytes[]): Promise<Replies> {
    try {
      let reply: ScriptReply | undefined
      if (this.#known.has(script)) {
        try {
          reply = await this.#connection.evalsha(this.#shaOf(script), keys, args)
        } catch (error) {
          if (!isNoScript(error)) throw error
          this.#known.delete(script)
        }
      }
      if (reply === undefined) {
        reply = await this.#connection.eval(script, keys, args)
        this.#known.add(script)
      }
      this.#onReply()
      return repliesOf(reply)
    } catch (error) {
      if (isCrossSlot(error)) this.#takesManyKeys = false
      throw storeError(error)
    }
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
