import type { RedisConnection } from '../redis-connection.js'
import { isRefusedBy, storeFailure } from './failure.js'

/** The EventEmitter that every client is. */
export type Emitter = Record<'on' | 'once' | 'off', (event: string, listener: EventListener) => unknown>

type EventListener = (...about: never[]) => void

/** Listens to a client for all connections that share it. */
interface Watch {
  /** Begins and ends the use by one connection. With the last one the listeners are taken off. */
  readonly join: () => void
  readonly leave: () => void
  /** Whether the client says that it is ready, and the server has not answered it yet. */
  isUnanswered: boolean
  /** Since the client was ready last. */
  latest: unknown
  /** Called once with the next event: an error, or undefined when the client is ready. */
  waiting: ((error: unknown) => void)[]
}

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
  const watch = watches.get(client) ?? beginWatch(client, isReady, ask)
  watch.join()
  let held = true
  return {
    trouble: () => (isReady() && !watch.isUnanswered ? undefined : (watch.latest ?? NOT_CONNECTED)),
    /**
     * Resolves once the client is connected, or rejects with an error that comes first. Undefined if there is nothing to wait
     * for: it is connected, or has reported an error since it last was, which `trouble` returns. A client that says it is ready
     * before the server has accepted its password is not connected yet (`isUnanswered`).
     */
    connect() {
      if ((isReady() && !watch.isUnanswered) || watch.latest !== undefined) return undefined
      return new Promise<void>((resolve, reject) => {
        watch.waiting.push((error) => (error === undefined ? resolve() : reject(error)))
      })
    },
    /** Ends this use of the client, once. */
    close() {
      if (held) watch.leave()
      held = false
    },
  }
}

/**
 * Begins to watch a client: notes its latest error until it is ready again, and calls those who wait for either. The client is
 * ready when it says so, or with `ask`, a command that the server answers only after the log-in, once that has been answered. The
 * error of a refused log-in is kept over that of the connection that breaks in consequence, as it says more.
 */
function beginWatch(client: Emitter, isReady: () => boolean, ask?: () => Promise<unknown>): Watch {
  // Notes an error of the client, or by undefined that it is connected, which clears the error. Tells those who wait for either.
  const failed = (error?: unknown): void => {
    // A refused log-in closes the connection, and what is reported of that says less.
    const isLess = isRefusal(watch.latest) && error !== undefined && !isRefusal(error)
    if (!isLess) watch.latest = error
    const { waiting } = watch
    watch.waiting = []
    for (const each of waiting) each(error)
  }
  /** Notes that the server has answered, so the client is connected: clears its error, and tells those who wait for that. */
  const answered = (): void => {
    watch.isUnanswered = false
    failed(undefined)
  }
  // Called when the client says that it is ready. A client that says so before the server has accepted its password has `ask`: it
  // sends a command that the server answers only after the log-in, and the client counts as connected when that is answered.
  const ready = (): void => {
    if (!ask) return answered()
    watch.isUnanswered = true
    // A refused log-in fails the command with the error reported of it, or NOAUTH. Any other, of a ready client, is an answer.
    ask().then(answered, (error) => {
      if (isReady() && error !== watch.latest && !isRefusedBy('NOAUTH', error)) answered()
    })
  }
  let users = 0
  const join = (): void => void users++
  const leave = (): void => {
    if (--users > 0) return
    client.off('error', failed)
    client.off('ready', ready)
    watches.delete(client)
  }
  const watch: Watch = { join, leave, isUnanswered: false, latest: undefined, waiting: [] }
  client.on('error', failed)
  client.on('ready', ready)
  watches.set(client, watch)
  return watch
}

/** Whether an error came from the server itself, for example of a wrong password, and not from a connection that failed. */
function isRefusal(error: unknown): boolean {
  return error !== undefined && storeFailure(error) !== 'unavailable'
}

/** Why a client is not connected that has reported nothing, such as one whose TLS handshake gets no answer. */
const NOT_CONNECTED = new Error('the client is not connected')
