// The parts that contenders with an injected clock share. Times are microseconds.

/** Callers that take turns. */
export const KEYS = 4

export const HOUR = 3_600_000_000

/** Where injected clocks begin. */
export const START = 1_800_000_000_000_000
