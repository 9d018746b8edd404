import type { RedisConnection } from '../redis-connection.js'

/** A client that the store made. */
export interface Opened {
  readonly connection: RedisConnection
  isReady(): boolean
  /**
   * How often it was connected so far. Calls that are made while it is not connected are queued, so those that fail before
   * the number changes were never written. Undefined if the client does not report it.
   */
  timesReady?(): number
  /** Resolves once it is connected; rejects with the first failure. */
  readonly first: Promise<unknown>
  /** Ends every socket and timer, in whatever state they are. */
  end(): void
}
