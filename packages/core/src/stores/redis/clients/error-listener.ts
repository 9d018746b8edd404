import type { Socket } from 'node:net'
import type { RedisConnection } from '../redis-connection.js'
import { isRefusedBy, storeFailure } from './failure.js'

/** The EventEmitter that every client is. */
export type Emitter = Record<'on' | 'once' | 'off', (event: string, listener: EventListener) => unknown>

type EventListener = (...about: never[]) => void

/**
 * Called on an error of ioredis: hears those that follow on its connection, of which the client hears the first alone. Over TLS a second
 * one may come, for example an alert after a refused certificate, and would end the process.
 */
export function hearLaterErrors(client: { readonly stream?: Socket | undefined }): void {
  client.stream?.on('error', () => {})
}

/** Listens to a client for all connections that share it. */
interface Watch extends Pick<RedisConnection, 'trouble' | 'connect'> {
  /** Begins the use by one connection. The returned function ends it, once; with the last use the listeners are taken off. */
  readonly join: () => () => void
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
  const { trouble, connect, join } = watches.get(client) ?? beginWatch(client, isReady, ask)
  return { trouble, connect, close: join() }
}

/**
 * Begins to watch a client: notes its latest error until it is ready again, and calls those who wait for either. The client is
 * ready when it says so, or with `ask`, a command that the server answers only after the log-in, once that has been answered. The
 * error of a refused log-in is kept over that of the connection that breaks in consequence, as it says more.
 */
function beginWatch(client: Emitter, isReady: () => boolean, ask?: () => Promise<unknown>): Watch {
  let users = 0
  // Whether the client says that it is ready, and the server has not answered it yet.
  let isUnanswered = false
  let latest: unknown // since the client was ready last
  // Called once with the next event: an error, or undefined when the client is ready.
  const waiting: ((error: unknown) => void)[] = []
  const isConnected = (): boolean => isReady() && !isUnanswered
  // Notes an error of the client, or by undefined that it is connected, which clears the error. Tells those who wait for either.
  const failed = (error?: unknown): void => {
    // A refused log-in closes the connection, and what is reported of that says less.
    const isLess = isRefusal(latest) && error !== undefined && !isRefusal(error)
    if (!isLess) latest = error
    for (const each of waiting.splice(0)) each(error)
  }
  /** Notes that the server has answered, so the client is connected: clears its error, and tells those who wait for that. */
  const answered = (): void => {
    isUnanswered = false
    failed(undefined)
  }
  // Called when the client says that it is ready. A client that says so before the server has accepted its password has `ask`: it
  // sends a command that the server answers only after the log-in, and the client counts as connected when that is answered.
  const ready = (): void => {
    if (!ask) return answered()
    isUnanswered = true
    // A refused log-in fails the command with the error reported of it, or NOAUTH. Any other, of a ready client, is an answer.
    ask().then(answered, (error) => {
      if (isReady() && error !== latest && !isRefusedBy('NOAUTH', error)) answered()
    })
  }
  const broke = (error: unknown): void => {
    hearLaterErrors(client as object)
    failed(error)
  }
  client.on('error', broke)
  client.on('ready', ready)
  const watch: Watch = {
    trouble: () => (isConnected() ? undefined : (latest ?? NOT_CONNECTED)),
    /**
     * Resolves once the client is connected, or rejects with an error that comes first. Undefined if there is nothing to wait
     * for: it is connected, or has reported an error since it last was, which `trouble` returns.
     */
    connect() {
      if (isConnected() || latest !== undefined) return undefined
      return new Promise<void>((resolve, reject) => {
        waiting.push((error) => (error === undefined ? resolve() : reject(error)))
      })
    },
    join: () => {
      users++
      let held = true
      return () => {
        if (!held) return
        held = false
        if (--users > 0) return
        client.off('error', broke)
        client.off('ready', ready)
        watches.delete(client)
      }
    },
  }
  watches.set(client, watch)
  return watch
}

/** Whether an error came from the server itself, for example of a wrong password, and not from a connection that failed. */
function isRefusal(error: unknown): boolean {
  return error !== undefined && storeFailure(error) !== 'unavailable'
}

/** Why a client is not connected that has reported nothing, such as one whose TLS handshake gets no answer. */
const NOT_CONNECTED = new Error('the client is not connected')
