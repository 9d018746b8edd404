/** Milliseconds without a byte from a server that owes a reply; after that, the connection is closed and made anew. */
export const SILENCE_MS = 1000

/** The longest that making a connection may take by default, in milliseconds. */
export const CONNECT_MS = 1000

/**
 * Milliseconds to wait before attempt `times` (1, 2, ...) to connect. The first delay is short, so that a connection that
 * was merely closed is back before most deadlines. Later ones stay short too, because Redis decides nothing until one
 * succeeds. Random, so that the processes of a fleet do not reconnect all at once.
 */
export function backOffMs(times: number): number {
  return Math.min(10 * 2 ** times, LONGEST_MS) * (0.5 + Math.random() / 2)
}

const LONGEST_MS = 200
