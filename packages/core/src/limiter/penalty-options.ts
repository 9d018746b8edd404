import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import { type Duration, formatDuration } from '../values/duration.js'
import { expectedButGot, PolicyError } from '../values/errors.js'
import * as option from '../values/options.js'
import { warnProcessOnce } from '../values/process-warning.js'
import { notShort } from '../values/short-duration.js'

/**
 * Blocks for keys that go on calling after they were refused, each longer than the one before.
 *
 * Counted are the `consume` and `acquire` calls that the store refuses with the reason 'limit': no `peek`, no cost of 0, no
 * other reason, and nothing in shadow mode. The call that starts a block is still refused with the reason 'limit', and its
 * `retryAfterMs` is the instant at which a call can pass; the calls after it are refused with the reason 'blocked'. A block that
 * lasts longer is never shortened.
 */
export interface PenaltyOptions {
  /**
   * Refused calls up to the first block, counting the one that starts it, 1 to 1,000,000. From then on every refused call
   * starts a block.
   * @default 1
   */
  readonly after?: number
  /** How long the first block lasts, from 1 ms to 365 days; a number is in milliseconds. */
  readonly block: Duration
  /**
   * Factor by which each block is longer than the last, from 1, which keeps all of them equal, to 1,000.
   * @default 1
   */
  readonly factor?: number
  /**
   * The longest block, from `block` to 365 days; a number is in milliseconds.
   * @default '1d', or `block` if that is longer
   */
  readonly maxBlock?: Duration
  /**
   * Time after which refusals are forgotten, counted from when the key is full again and its block is over: 1 ms to 365 days; a
   * number is in milliseconds.
   * @default '1d'
   */
  readonly forgetAfter?: Duration
  /**
   * How a key stands at the end of a block: `'window'` leaves what was consumed to its windows, so that a call may be refused
   * until a window that is longer than the block is over; `'fresh'` begins with a full allowance, as other packages do. Then any
   * span admits at most what the policies promise for it, and once more for each block that begins in it.
   * @default 'window'
   */
  readonly then?: 'fresh' | 'window'
}

export const PENALTY = {
  after: option.whole(1, 1_000_000, 1),
  block: option.required(notShort(option.duration('1ms', '365d'))),
  factor: option.number(1, 1000, 1),
  maxBlock: option.duration('1ms', '365d'),
  forgetAfter: option.duration('1ms', '365d', '1d'),
  then: option.oneOf(['window', 'fresh'], 'window'),
} satisfies option.DeclarationOf<PenaltyOptions>

/** The option `penalty`, in microseconds. Every error about it is an INVALID_PENALTY. */
export const penalty = option.checkedBy((given, name): Penalty => {
  const about = { what: name, prefix: `${name}.`, code: 'INVALID_PENALTY' } as const
  const settings = option.readOptions(PENALTY, given as PenaltyOptions, about)
  const { after, block, factor, maxBlock = Math.max(block, DAY_MS), forgetAfter, then } = settings
  if (maxBlock < block) {
    const bound = `penalty.maxBlock must be at least penalty.block, which is ${formatDuration(block)}`
    throw expectedButGot(PolicyError, 'INVALID_PENALTY', bound, (given as PenaltyOptions).maxBlock)
  }
  const us = { block: block * 1000, maxBlock: maxBlock * 1000, forgetAfter: forgetAfter * 1000 }
  return { after, factor, ...us, ...(then === 'fresh' && { then }) }
})

/**
 * Warns if a penalty makes a key full again after each block (`then: 'fresh'`), and the block is shorter than the longest window of
 * the policies: a caller then gets a full allowance more often than that policy grants. Once for each name of a limiter; `block` and
 * windows are in microseconds.
 */
export function warnIfFresh(limiter: string, policies: readonly Policy[], { then, block }: Penalty): void {
  const [longest] = policies.toSorted((a, b) => b.window - a.window)
  if (then !== 'fresh' || longest!.window <= block) return
  const allowed = `${longest!.capacity} units every ${formatDuration(block / 1000)}`
  const why = `'${longest!.name}' is full again after each block, so it allows ${allowed}`
  warnProcessOnce('PENALTY_FRESH', `penalty of '${limiter}': ${why}`, `PENALTY_FRESH ${limiter}`)
}

const DAY_MS = 86_400_000
