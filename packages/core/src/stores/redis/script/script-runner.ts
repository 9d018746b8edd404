import { createHash } from 'node:crypto'
import { isCrossSlot, isNoScript, storeError } from '../clients/failure.js'
import type { RedisConnection, RedisKey, ScriptReply } from '../redis-connection.js'
import type { Receiver } from '../../store.js'
import { PackedReply, unpackFailure } from './wire.js'

/** Sends calls of one script to Redis. */
export interface Transport {
  /** Whether one call may have several keys. */
  takesManyKeys(): boolean
  /**
   * Runs the script once for all `keys`. If `args` is shorter, the remaining keys reuse its last element. It fails only if
   * the whole call failed. After a failure because of keys in several slots, `takesManyKeys` returns false.
   */
  send(keys: readonly string[], args: readonly Buffer[], receiver: Receiver<Replies>): void
  /** Runs `sendAll`, and writes what it sends to a server in one piece. */
  inOneWrite(sendAll: () => void): void
}

/** The replies of a script: to plain calls of several keys in one piece, to each other key by itself. */
export interface Replies {
  readonly packed: PackedReply | undefined
  /** In the order of their keys. */
  readonly own: readonly (Buffer | Error)[]
}

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
  run(script: string, key: RedisKey, argument: Buffer): Promise<Buffer> {
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
    args: readonly Buffer[],
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
  if (reply instanceof Uint8Array) return { packed: undefined, own: [reply] }
  const [packed, ...own] = reply
  return { packed: new PackedReply(packed!), own: own.map(answerOrError) }
}

function answerOrError(reply: Buffer): Buffer | Error {
  const failure = unpackFailure(reply)
  return failure === undefined ? reply : storeError(new Error(failure))
}
