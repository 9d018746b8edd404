import type { Socket } from 'node:net'
import type { RedisConnection } from '../redis-connection.js'
import { isRefusedBy, storeFailure } from './failure.js'

/** The EventEmitter that every client is. */
export type Emitter = Record<'on' | 'once' | 'off', (event: string, listener: EventListener) => unknown>

type EventListener = (...about: never[]) => void

/**
 * Listens to errors that follow the first one on a connection of ioredis, which itself hears the first alone. Over TLS a second
 * one may come, for example an alert after a refused certificate, and without a listener it would end the process.
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
 * All stores that share a client share the listener, because one for each would raise Node's warning about leaks; `close` ends one
 * use of it. `isReady` says whether the client calls itself ready. For a client that does so before the server has accepted its
 * password, `ask` sends a command that the server answers only after the log-in.
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
 * Begins to watch a client: keeps its latest error until it is connected again, and settles the promises of those who wait for
 * either (`connect`). The client is connected when it says that it is ready, and with `ask` once the server has answered that
 * command. `trouble` returns why the client is not connected. Each user of the client joins the watch, which ends when all have
 * left it by the function that `join` returns.
 */
function beginWatch(client: Emitter, isReady: () => boolean, ask?: () => Promise<unknown>): Watch {
  let users = 0
  let isAnswerAwaited = false
  let latestError: unknown // since the client was connected last
  /** Called once, with the next error, or with undefined when the client is connected. */
  const waiting: ((error: unknown) => void)[] = []
  const isConnected = (): boolean => isReady() && !isAnswerAwaited
  const settleWaiting = (error: unknown): void => {
    for (const settle of waiting.splice(0)) settle(error)
  }
  const onConnected = (): void => {
    isAnswerAwaited = false
    latestError = undefined
    settleWaiting(undefined)
  }
  const onReady = (): void => {
    if (!ask) return onConnected()
    isAnswerAwaited = true
    // A refused log-in fails the command with the error that was reported before, or with NOAUTH. Any other error is an answer.
    ask().then(onConnected, (error) => {
      if (isReady() && error !== latestError && !isRefusedBy('NOAUTH', error)) onConnected()
    })
  }
  const onError = (error: unknown): void => {
    hearLaterErrors(client as object)
    // A refused log-in closes the connection, and what is reported of that says less.
    const saysLess = isRefusal(latestError) && !isRefusal(error)
    if (!saysLess) latestError = error
    settleWaiting(error)
  }
  client.on('error', onError)
  client.on('ready', onReady)
  const watch: Watch = {
    trouble: () => (isConnected() ? undefined : (latestError ?? NOT_CONNECTED)),
    /**
     * Resolves once the client is connected, or rejects with an error that comes first. Undefined if there is nothing to wait
     * for: it is connected, or has reported an error since it last was, which `trouble` returns.
     */
    connect() {
      if (isConnected() || latestError !== undefined) return undefined
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
        client.off('error', onError)
        client.off('ready', onReady)
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
