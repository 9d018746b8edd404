import { Buffer } from 'node:buffer' // the global is a getter
import { createHash } from 'node:crypto'
import {
  type Bytes,
  isCrossSlot,
  isNoScript,
  type Key,
  type RedisConnection,
  type Reply,
  storeError,
} from '../client.js'
import type { Transport } from '../group-commit.js'
import { unpackFailure } from './wire.js'

/**
 * Runs scripts by their SHA-1, and sends the text until a server has run it, and again where one does not know it:
 * scripts vanish on restart, failover and SCRIPT FLUSH, and each node of a Cluster has its own. Nothing was executed then,
 * so nothing is repeated. With the text first, calls that are on their way together keep their order: one that was sent
 * again would come after those behind it, if somebody else had brought the script along in between.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  readonly #onReply: () => void
  readonly #shas = new Map<string, string>()
  /** Texts that a server has run for this process, and not lost since. */
  readonly #known = new Set<string>()
  #takesManyKeys: boolean

  /** `onReply` is called after each reply. */
  constructor(connection: RedisConnection, onReply: () => void) {
    this.#connection = connection
    this.#onReply = onReply
    this.#takesManyKeys = !connection.isCluster
  }

  /** The way to Redis of one script. A call may have several keys, but in a Cluster or where a server has refused that. */
  transport(script: string): Transport {
    return {
      takesManyKeys: () => this.#takesManyKeys,
      send: (keys, args) => this.#runAll(script, keys, args),
    }
  }

  /** Forgets a script, whose text is sent anew should it be run again. */
  forget(script: string): void {
    this.#shas.delete(script)
    this.#known.delete(script)
  }

  /**
   * Runs a script once on one key.
   * @throws {StoreError} with the client's error as its cause.
   */
  async run(script: string, key: Key, argument: Bytes): Promise<Buffer> {
    const [reply] = await this.#runAll(script, [key], [argument])
    return reply as Buffer // a key that is alone fails as a whole
  }

  async #runAll(
    script: string,
    keys: readonly Key[],
    args: readonly Bytes[],
  ): Promise<readonly (Buffer | Error)[]> {
    try {
      let reply: Reply | undefined
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
      return keys.length === 1 ? [asBuffer(reply as Bytes)] : (reply as readonly Bytes[]).map(answerOrError)
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

function answerOrError(reply: Bytes): Buffer | Error {
  const buffer = asBuffer(reply)
  const failure = unpackFailure(buffer)
  return failure === undefined ? buffer : storeError(new Error(failure))
}

function asBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
