import { createHash } from 'node:crypto'
import { SluiceError, StoreError } from '../../errors.js'
import { isNoScript, type RedisConnection, storeFailure } from './client.js'

/**
 * Runs scripts by their SHA-1, and sends the text only where a server does not know it: scripts vanish on restart,
 * failover and SCRIPT FLUSH, and each node of a Cluster has its own. Nothing was executed then, so nothing is repeated.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  readonly #onReply: () => void
  readonly #shas = new Map<string, string>()

  /** `onReply` is called after each reply. */
  constructor(connection: RedisConnection, onReply: () => void) {
    this.#connection = connection
    this.#onReply = onReply
  }

  /** @throws {StoreError} with the client's error as its cause. */
  async run(script: string, key: Buffer, argument: Buffer): Promise<Buffer> {
    try {
      const reply = await this.#send(script, key, argument)
      this.#onReply()
      return Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength)
    } catch (error) {
      if (error instanceof SluiceError) throw error
      const failure = storeFailure(error)
      throw new StoreError(CODES[failure], `Redis did not decide: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }

  async #send(script: string, key: Buffer, argument: Buffer): Promise<Uint8Array> {
    try {
      return await this.#connection.evalsha(this.#shaOf(script), key, argument)
    } catch (error) {
      if (!isNoScript(error)) throw error
      return this.#connection.eval(script, key, argument)
    }
  }

  #shaOf(script: string): string {
    let sha = this.#shas.get(script)
    if (!sha) this.#shas.set(script, (sha = createHash('sha1').update(script).digest('hex')))
    return sha
  }
}

const CODES = {
  unavailable: 'STORE_UNAVAILABLE',
  oom: 'STORE_OOM',
  readonly: 'STORE_READONLY',
  loading: 'STORE_LOADING',
  busy: 'STORE_BUSY',
  forbidden: 'STORE_FORBIDDEN',
  error: 'STORE_ERROR',
} as const
