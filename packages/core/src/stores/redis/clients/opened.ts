import type { RedisConnection } from '../client.js'

/** A client that a connection of our own made for itself. */
export interface Opened {
  readonly connection: RedisConnection
  isReady(): boolean
  /** Resolves once it is connected; rejects with the first failure. */
  readonly first: Promise<unknown>
  /** Lets go of every socket and timer, whatever state they are in. */
  end(): void
}
