import type { RedisConnection } from '../redis-connection.js'

/** A client that a connection of our own made for itself. */
export interface Opened {
  readonly connection: RedisConnection
  isReady(): boolean
  /**
   * How often it was connected so far. Calls made while it is not are kept until it is, so those that fail before were never
   * written. Undefined where the client does not tell.
   */
  timesReady?(): number
  /** Resolves once it is connected; rejects with the first failure. */
  readonly first: Promise<unknown>
  /** Lets go of every socket and timer, whatever state they are in. */
  end(): void
}
