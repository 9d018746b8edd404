import type { RedisConnection } from '../client.js'

/** A client that a connection of our own made for itself. */
export interface Opened {
  readonly connection: RedisConnection
  isReady(): boolean
  /** Lets go of every socket and timer, whatever state they are in. */
  end(): void
}
