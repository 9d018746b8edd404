import { createLimiter, gcra, type Limiter, slidingLog, type Store } from '@sluice/core'

/** One limit for the whole fleet: as many calls a minute as these, whoever makes them. */
export const LIMIT = 600

/** With `even`, calls are spread: this many milliseconds lie between one and the next. */
export const SPACING_MS = 60_000 / LIMIT

/** The same limiter in every process: its name and the key say which state in Redis it is. */
export function fleetLimiter(store: Store, even: boolean): Limiter {
  const numbers = { limit: LIMIT, window: '1m' } as const
  return createLimiter({
    name: 'fleet',
    store,
    policies: [even ? gcra({ ...numbers, burst: 1 }) : slidingLog(numbers)],
    // An answer in time matters less here than that each counts.
    deadline: '5s',
    onStoreError: 'throw',
  })
}
