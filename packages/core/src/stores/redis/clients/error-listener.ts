import type { RedisConnection } from '../redis-connection.js'
import { isRefusedBy, storeFailure } from './failure.js'

/** The EventEmitter that every client is. */
export type Emitter = Record<'on' | 'once' | 'off', (event: string, listener: EventListener) => unknown>

type EventListener = (...about: never[]) => void

const watches = new WeakMap<Emitter, Watch>()

/**
 * Keeps one 'error' listener on a client while any connection uses it, and returns what it learns: `trouble`, why the client is
 * not connected, and `connect`, a promise that it is. Without a listener, node-redis ends the process when a connection breaks.
 * All stores that share a client share one, because one for each would raise Node's warning about leaks; `close` ends this use.
 * `isReady` asks the client itself. A client that says so before the server has accepted its password hands in `ask`, a command
 * that the server answers only after the log-in.
 */
export function listenForErrors(
  client: Emitter,
  isReady: () => boolean,
  ask?: () => Promise<unknown>,
): Pick<RedisConnection, 'trouble' | 'connect' | 'close'> {
  const watch = watches.get(client) ?? new Watch(client, isReady, ask)
  return watch.use()
}

/**
 * Watches a client for all connections that share it: notes its latest error until it is ready again, and calls those who wait for
 * either. The client is ready when it says so, or with `ask`, a command that the server answers only after the log-in, once that
 * has been answered.
 */
class Watch {
  #users = 0
  /** Whether the client says that it is ready, and the server has not answered it yet. */
  #isUnanswered = false
  /** Since the client was ready last. */
  #latest: unknown
  /** Called once with the next event: an error, or undefined when the client is ready. */
  #waiting: ((error: unknown) => void)[] = []

  constructor(
    readonly client: Emitter,
    readonly isReady: () => boolean,
    readonly ask?: () => Promise<unknown>,
  ) {
    client.on('error', this.#failed)
    client.on('ready', this.#ready)
    watches.set(client, this)
  }

  /** Begins the use of the client by one more connection. */
  use(): ReturnType<typeof listenForErrors> {
    this.#users++
    let held = true
    return {
      trouble: () => (this.#isConnected() ? undefined : (this.#latest ?? NOT_CONNECTED)),
      /**
       * Resolves once the client is connected, or rejects with an error that comes first. Undefined if there is nothing to wait
       * for: it is connected, or has reported an error since it last was, which `trouble` returns.
       */
      connect: () => {
        if (this.#isConnected() || this.#latest !== undefined) return undefined
        return new Promise<void>((resolve, reject) => {
          this.#waiting.push((error) => (error === undefined ? resolve() : reject(error)))
        })
      },
      /** Ends this use of the client, once. */
      close: () => {
        if (held) this.#leave()
        held = false
      },
    }
  }

  /** Ends the use by one connection. With the last one the listeners are taken off. */
  #leave(): void {
    if (--this.#users > 0) return
    this.client.off('error', this.#failed)
    this.client.off('ready', this.#ready)
    watches.delete(this.client)
  }

  /** Whether the client is ready. One that says so before the server has accepted its password is not yet. */
  #isConnected(): boolean {
    return this.isReady() && !this.#isUnanswered
  }

  /**
   * Notes an error of the client, or by undefined that it is connected, and passes it to those who wait for either. A refused
   * log-in closes the connection, and what is reported of that says less, so the earlier error is kept.
   */
  readonly #failed = (error?: unknown): void => {
    const isLess = isRefusal(this.#latest) && error !== undefined && !isRefusal(error)
    if (!isLess) this.#latest = error
    for (const each of this.#waiting.splice(0)) each(error)
  }

  /** Notes that the server has answered, so the client is connected. */
  readonly #answered = (): void => {
    this.#isUnanswered = false
    this.#failed(undefined)
  }

  /** Notes that the client says it is ready. With `ask` it counts as connected when the server has answered that. */
  readonly #ready = (): void => {
    if (!this.ask) return this.#answered()
    this.#isUnanswered = true
    // A refused log-in fails the command with the error reported of it, or NOAUTH. Any other, of a ready client, is an answer.
    this.ask().then(this.#answered, (error) => {
      if (this.isReady() && error !== this.#latest && !isRefusedBy('NOAUTH', error)) this.#answered()
    })
  }
}

/** Whether an error came from the server itself, for example of a wrong password, and not from a connection that failed. */
function isRefusal(error: unknown): boolean {
  return error !== undefined && storeFailure(error) !== 'unavailable'
}

/** Why a client is not connected that has reported nothing, such as one whose TLS handshake gets no answer. */
const NOT_CONNECTED = new Error('the client is not connected')
