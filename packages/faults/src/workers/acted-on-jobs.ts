import type { LimiterOptions } from '@sluice/core'
import type { Address } from '@sluice/harness/redis'

/** Units of a key; nothing of it comes back during a race. */
export const LIMIT = 20
/** Two limiters, of which the second reserves. */
export const LIMITERS: Readonly<Record<string, Pick<LimiterOptions, 'reservations'>>> = {
  counting: {},
  reserving: { reservations: { max: 10_000 } },
}

/** A key whose last unit ends the race. */
export const END = 'end'

export interface ActedOnJob {
  readonly redis: Address
  /** The calls on these go on until `END` is exhausted. */
  readonly keys: readonly string[]
}

/** A call, with its instants in milliseconds on the clock that all processes of the machine share. */
export interface ActedOnCall {
  readonly limiter: string
  readonly key: string
  readonly beganAt: number
  readonly endedAt: number
  readonly allowed: boolean
  /** Admitted uncounted. */
  readonly exempt: boolean
}
