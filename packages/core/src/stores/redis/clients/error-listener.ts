import type { RedisConnection } from '../redis-connection.js'
import { storeFailure } from './failure.js'

/** The EventEmitter that every client is. */
export interface Emitter {
  on(event: string, listener: (...about: never[]) => void): unknown
  once(event: string, listener: (...about: never[]) => void): unknown
  off(event: string, listener: (...about: never[]) => void): unknown
}

/** Listens to a client for all connections that share it. */
interface Watch {
  users: number
  /** Since the client was ready last. */
  latest: unknown
  /** Called once with the next event: an error, or undefined when the client is ready. */
  waiting: ((error: unknown) => void)[]
  /** Takes each event. */
  readonly listener: (error?: unknown) => void
}

const watches = new WeakMap<Emitter, Watch>()

/**
 * Keeps one 'error' listener on a client while any connection uses it. Without a listener, node-redis ends the process when
 * a connection breaks. All stores that share a client share one listener, because one for each would raise Node's warning
 * about leaks. `close` ends this use of the client.
 */
export function listenForErrors(
  client: Emitter,
  isReady: () => boolean,
): Pick<RedisConnection, 'trouble' | 'connect' | 'close'> {
  const watch = watches.get(client) ?? watchOf(client)
  watch.users++
  let held = true
  return {
    trouble: () => (isReady() ? undefined : (watch.latest ?? NOT_CONNECTED)),
    connect() {
      if (isReady() || watch.latest !== undefined) return undefined
      return new Promise<void>((resolve, reject) => {
        watch.waiting.push((error) => (error === undefined ? resolve() : reject(error)))
      })
    },
    close() {
      if (!held) return
      held = false
      if (--watch.users > 0) return
      client.off('error', watch.listener)
      client.off('ready', watch.listener)
      watches.delete(client)
    },
  }
}

function watchOf(client: Emitter): Watch {
  const listener = (error?: unknown): void => {
    // A refused log-in closes the connection, and what is reported of that says less.
    const isLess = isRefusal(watch.latest) && error !== undefined && !isRefusal(error)
    if (!isLess) watch.latest = error
    const { waiting } = watch
    watch.waiting = []
    for (const each of waiting) each(error)
  }
  const watch: Watch = { users: 0, latest: undefined, waiting: [], listener }
  client.on('error', listener)
  client.on('ready', listener)
  watches.set(client, watch)
  return watch
}

/** Whether the server said it. */
function isRefusal(error: unknown): boolean {
  return error !== undefined && storeFailure(error) !== 'unavailable'
}

/** Why a client is not connected that has reported nothing, such as one whose TLS handshake gets no answer. */
const NOT_CONNECTED = new Error('the client is not connected')
