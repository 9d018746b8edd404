import type { Limiter } from '@sluice/core'

/** One line of the fault matrix: what is done to Sluice, and whether it survived. */
export interface Row {
  readonly number: number
  readonly fault: string
  /** Whether it asserts a time, so that it is no part of `npm run verify -- fault-rows`: machines are shared. */
  readonly timed?: boolean
  /** It runs tests that are part of `npm test` by themselves. */
  readonly tested?: boolean
  /** Codes of the warnings that its faults cause, in this process or in one of its own: each comes, and no other. */
  readonly warnings?: readonly string[]
  /** Codes of those that may come too, as it depends on how busy the machine is. */
  readonly perhaps?: readonly string[]
  /** `share` of the full load, 1 in `npm run verify -- faults`, less in `npm run verify -- fault-rows`. */
  run(share: number, watch?: Watch): Promise<Outcome> | Outcome
}

/** Called with each limiter under load before its first call, so that its metrics can be read (alerts/run.ts). */
export type Watch = (limiter: Limiter) => void

export interface Outcome {
  readonly pass: boolean
  /** The measured numbers, as text. */
  readonly figure: string
}

export const million = (n: number): string =>
  `${(n / 1e6).toLocaleString('en', { maximumFractionDigits: 2 })} M`
