import { sum, Tally } from '../tally.js'

/** Calls a minute, for the fleet as a whole. */
export const LIMIT = 600

/** With `even`, calls are spread: this many milliseconds lie between one and the next. */
const SPACING_MS = 60_000 / LIMIT

export interface Verdict {
  readonly held: boolean
  readonly text: string
}

/**
 * Whether the fleet as a whole got what one limit permits. All happens within a minute, so where calls are denied the
 * total is exact. Where they wait, the first may pass at once and each other SPACING_MS after the one before; a tenth
 * may be missing, for turns that were given up at the end or came while a process was busy.
 */
export function check(tallies: readonly Tally[], even: boolean): Verdict {
  const { allowed, denied } = sum(tallies.map(({ total }) => total))
  const failed = tallies.reduce((count, tally) => count + tally.failed, 0)
  const asked = allowed + denied + failed
  const ms = Tally.spanMs(tallies)
  const most = even ? 1 + Math.floor(ms / SPACING_MS) : Math.min(LIMIT, asked)
  const least = even ? Math.floor(0.9 * most) : most
  const right = even ? `${least} to ${most} in ${(ms / 1000).toFixed(1)} s` : `exactly ${most}`
  const failures = failed > 0 ? ` Redis did not decide ${failed} calls.` : ''
  const held = allowed >= least && allowed <= most && failed === 0
  return {
    held,
    text: `${held ? 'The limit held' : 'The check failed'}: ${allowed} of ${asked} calls were allowed; right is ${right}.${failures}`,
  }
}
