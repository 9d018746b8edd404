import type { Receiver } from '../store.js'
import type { Bytes } from './redis-connection.js'
import type { Replies } from './script-call.js'

/** Sends calls of one script to Redis. */
export interface Transport {
  /** Whether one call may have several keys. */
  takesManyKeys(): boolean
  /**
   * Runs the script once for all `keys`. If `args` is shorter, the remaining keys reuse its last element. It fails only if
   * the whole call failed. After a failure because of keys in several slots, `takesManyKeys` returns false.
   */
  send(keys: readonly string[], args: readonly Bytes[], receiver: Receiver<Replies>): void
  /** Runs `sendAll`, and writes what it sends to a server in one piece. */
  inOneWrite(sendAll: () => void): void
}
