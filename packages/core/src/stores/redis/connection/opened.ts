import * as timers from 'node:timers'
import { backOff } from '../../../values/back-off.js'
import type { RedisConnection } from '../redis-connection.js'

// Fake timers are put in place of the globals and of the module's functions, and read no byte while they move.
const { clearInterval, setInterval } = timers

/** A connection over a client that the store made. `close` ends every socket and timer, in whatever state they are. */
export interface Opened extends RedisConnection {
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
}

/** Milliseconds without a byte from a server that owes a reply; after that, the connection is closed and made anew. */
export const SILENCE_MS = 1000

/** Calls `look` every `ms` milliseconds until it returns true. The timer keeps no process alive, unless its `ref` is called. */
export function every(ms: number, look: () => boolean): NodeJS.Timeout {
  const timer = setInterval(() => {
    if (look()) clearInterval(timer)
  }, ms)
  return timer.unref()
}

/**
 * Has `tend` called with each duplicate (a further connection with the same options) that is made of a client from now on: replaces its
 * method `duplicate` by one that does so.
 */
export function onDuplicate<C extends { duplicate(...options: object[]): C }>(
  client: C,
  tend: (made: C) => void,
): void {
  const duplicate = client.duplicate.bind(client)
  Object.assign(client, {
    duplicate: (...options: object[]) => {
      const made = duplicate(...options)
      tend(made)
      return made
    },
  })
}

/**
 * Returns the milliseconds to wait before attempt number `times` (1, 2, ...) to connect. The first delay is short, so that a
 * connection that was merely closed is back before most deadlines. Later ones stay short too, because Redis decides nothing until
 * one succeeds.
 */
export function backOffMs(times: number): number {
  return backOff(10, times, LONGEST_MS)
}

const LONGEST_MS = 200
