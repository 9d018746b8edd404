import type { Penalty } from '../stores/penalty.js'
import { type Duration, formatDuration, parseDuration } from '../values/duration.js'
import { expected, PolicyError } from '../values/errors.js'

/**
 * Blocks for keys that go on calling after they were refused, each longer than the one before.
 *
 * Counted are the `consume` and `acquire` calls that the store refuses with the reason 'limit': no `peek`, no cost of 0, no
 * other reason, and nothing in shadow mode. The call that starts a block is still refused with the reason 'limit', and its
 * `retryAfterMs` is the end of the block; the calls after it are refused with the reason 'blocked'. A block that lasts longer is
 * never shortened.
 */
export interface PenaltyOptions {
  /**
   * Refused calls up to the first block, counting the one that starts it, 1 to 1,000,000. From then on every refused call
   * starts a block.
   * @default 1
   */
  readonly after?: number
  /** How long the first block lasts, from 1 ms to 365 days. */
  readonly block: Duration
  /**
   * Each block is so many times as long as the one before: a number from 1, which keeps all of them equal, to 1,000.
   * @default 1
   */
  readonly grow?: number
  /**
   * How long a block lasts at most, from `block` to 365 days.
   * @default '1d', or `block` if that is longer
   */
  readonly most?: Duration
  /**
   * The count is forgotten so long after the key is full again and its last block is over, from 1 ms to 365 days.
   * @default '1d'
   */
  readonly forget?: Duration
}

const OPTIONS: Record<keyof PenaltyOptions, true> = {
  after: true,
  block: true,
  grow: true,
  most: true,
  forget: true,
}
const DAY_MS = 86_400_000

/** @throws {PolicyError} INVALID_PENALTY. */
export function parsePenalty(given: PenaltyOptions): Penalty {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid("penalty must be an object like { after: 3, block: '10m' }", given)
  }
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(OPTIONS, name)) {
      const names = Object.keys(OPTIONS).join(', ')
      throw new PolicyError('INVALID_PENALTY', `penalty has no option '${name}': its options are ${names}`)
    }
  }
  const { after = 1, block, grow = 1, most, forget = '1d' } = given
  if (!(Number.isInteger(after) && after >= 1 && after <= 1_000_000)) {
    throw invalid('penalty.after must be a whole number from 1 to 1000000', after)
  }
  if (!(typeof grow === 'number' && grow >= 1 && grow <= 1000)) {
    throw invalid('penalty.grow must be a number from 1 to 1000', grow)
  }
  const blockMs = durationOf(block, 'block')
  const mostMs = most === undefined ? Math.max(blockMs, DAY_MS) : durationOf(most, 'most')
  if (mostMs < blockMs) {
    throw invalid(`penalty.most must be at least penalty.block, which is ${formatDuration(blockMs)}`, most)
  }
  const forgetMs = durationOf(forget, 'forget')
  return { after, block: blockMs * 1000, grow, most: mostMs * 1000, forget: forgetMs * 1000 }
}

function durationOf(value: Duration, name: string): number {
  return parseDuration(value, `penalty.${name}`, { error: PolicyError, code: 'INVALID_PENALTY' })
}

function invalid(what: string, value: unknown): Error {
  return expected(PolicyError, 'INVALID_PENALTY', what, value)
}
