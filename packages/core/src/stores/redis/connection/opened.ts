import type { RedisConnection } from '../redis-connection.js'

/** A client that the store made. */
export interface Opened {
  readonly connection: RedisConnection
  /**
   * How often it was ready so far. Calls that are made while it is not ready are queued, so those that fail before the number
   * changes were never written. Undefined for node-redis, which writes its queue before it is ready.
   */
  timesReady?(): number
  /**
   * Whether the server refused a call because it became a replica, and the client reconnects because of that. Redis executed
   * nothing, so the call may be repeated once the promise resolves. Undefined for any other failure.
   */
  afterStepDown?(error: unknown): Promise<void> | undefined
  /** Resolves once it is connected; rejects with the first failure. */
  readonly first: Promise<unknown>
  /** Ends every socket and timer, in whatever state they are. */
  end(): void
}
