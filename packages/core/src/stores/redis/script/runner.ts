import { createHash } from 'node:crypto'
import type { Receiver } from '../../store.js'
import { isRefusedBy, storeError } from '../clients/failure.js'
import type { RedisConnection, RedisKey, ScriptReply } from '../redis-connection.js'
import { NumberReader, unpackFailure } from './wire.js'

/** The replies of a script: to plain calls of several keys in one piece, to each other key by itself. */
export interface Replies {
  readonly packed: NumberReader | undefined
  /** In the order of their keys. */
  readonly own: readonly (Buffer | Error)[]
}

/**
 * Runs scripts by their SHA-1. The text is sent until a server has run it, and again after NOSCRIPT: restart, failover and SCRIPT
 * FLUSH lose scripts, and each node of a Cluster has its own. Nothing was executed then, so nothing is repeated. The text goes
 * first to keep calls in order: one that is sent again comes after later ones if another process loaded the script meanwhile.
 */
export class ScriptRunner {
  /** The SHA-1 of each script that a server has run for this process and that was not lost since. */
  readonly #shas = new Map<string, string>()
  /** Whether a call may have several keys: not in a Cluster, nor once a server has refused that. */
  takesManyKeys: boolean

  /**
   * Runs scripts over this connection. `onFirstReply` is called once, after the first reply, and `onReadonly` each time that a
   * replica has refused a call.
   */
  constructor(
    readonly connection: RedisConnection,
    private onFirstReply: (() => void) | undefined,
    readonly onReadonly?: () => void,
  ) {
    this.takesManyKeys = !connection.isCluster
  }

  /** Forgets a script. If it is run again, its text is sent first. */
  forget(script: string): void {
    this.#shas.delete(script)
  }

  /** Runs a script once on one key, and resolves with its reply. Rejects with a StoreError whose cause is the client's error. */
  run(script: string, key: RedisKey, argument: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      // With a single key, an error fails the whole call.
      const answered = ({ own }: Replies): void => resolve(own[0] as Buffer)
      this.runAll(script, [key], [argument], { answered, failed: reject })
    })
  }

  /**
   * Runs a script once for all `keys`, each with its argument; if `args` is shorter, the remaining keys share its last one.
   * `receiver` gets the replies, or the error of the whole call. The script is sent as its SHA-1 if a server has run it before, and
   * otherwise, or if the server no longer knows it (NOSCRIPT), as its text.
   */
  runAll(
    script: string,
    keys: readonly RedisKey[],
    args: readonly Buffer[],
    receiver: Receiver<Replies>,
  ): void {
    const { connection } = this
    const sha = this.#shas.get(script)
    let sent: Promise<ScriptReply>
    try {
      sent = sha === undefined ? connection.eval(script, keys, args) : connection.evalsha(sha, keys, args)
    } catch (error) {
      sent = Promise.reject(error)
    }
    sent.then(
      (reply) => {
        if (sha === undefined) this.#shas.set(script, this.#shas.get(script) ?? sha1(script))
        let replies: Replies
        try {
          replies = repliesOf(reply, keys.length)
        } catch (error) {
          return receiver.failed(storeError(error))
        }
        this.onFirstReply?.()
        this.onFirstReply = undefined
        receiver.answered(replies)
      },
      (error: unknown) => {
        if (sha !== undefined && isRefusedBy('NOSCRIPT', error)) {
          this.#shas.delete(script)
          return this.runAll(script, keys, args, receiver)
        }
        if (isRefusedBy('CROSSSLOT', error)) this.takesManyKeys = false
        if (isRefusedBy('READONLY', error)) this.onReadonly?.()
        receiver.failed(storeError(error))
      },
    )
  }
}

/** The SHA-1 of a script's text in hex, by which EVALSHA names a script that the server knows. */
function sha1(script: string): string {
  return createHash('sha1').update(script).digest('hex')
}

/**
 * Splits what a script returned for so many `keys`. For one key that is its own reply. For several it is a list: first, packed in
 * one piece, the answers to all plain calls (those that fit at once), then the replies of the other keys; or that piece alone, if
 * all were plain.
 */
function repliesOf(reply: ScriptReply, keys: number): Replies {
  if (reply instanceof Uint8Array) {
    return keys > 1 ? { packed: new NumberReader(reply, true), own: [] } : { packed: undefined, own: [reply] }
  }
  const [packed, ...own] = reply
  return { packed: new NumberReader(packed!, true), own: own.map(answerOrError) }
}

/** Returns the reply to one key of several, or the error that stands in its place, as a StoreError. */
function answerOrError(reply: Buffer): Buffer | Error {
  const failure = unpackFailure(reply)
  return failure === undefined ? reply : storeError(new Error(failure))
}
