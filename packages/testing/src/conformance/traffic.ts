import * as fc from 'fast-check'

export type Kind =
  'consume' | 'peek' | 'book' | 'cancel' | 'refund' | 'release' | 'charge' | 'block' | 'hold' | 'reset'

/** One call that is yet to be given its numbers: they depend on the answers that came before (see operation.ts). */
export interface Step {
  readonly kind: Kind
  /** Which set of limits comes with the call. */
  readonly tier: number
  /** Which policy of the list, and which earlier booking or charge, the step refers to. */
  readonly pick: number
  /** Where the clock moves to before the call: an edge, or so many parts of a window on, and `off` microseconds beside that. */
  readonly to: 'stay' | 'part' | 'bucket' | 'window' | 'at' | 'reset' | 'idle'
  readonly parts: number
  readonly off: number
  /** The number that the cost is counted from, and the units that are added to it. */
  readonly of: 'nothing' | 'remaining' | 'capacity' | 'half'
  readonly units: number
  /** The longest wait: parts of a window, or the wait of the last answer and `waitOff` microseconds beside it. */
  readonly wait: 'windows' | 'known'
  readonly waitOff: number
}

export interface TrafficOptions {
  readonly kinds: Readonly<Partial<Record<Kind, number>>>
  readonly tiers?: number
  readonly most?: number
}

/** Calls that may come before a law is tried: all but bans, pauses and resets. */
export const HISTORY: TrafficOptions['kinds'] = {
  consume: 8,
  book: 3,
  refund: 2,
  release: 2,
  charge: 1,
  cancel: 1,
}

/**
 * Draws up to `most` steps, which are calls on one key: the kind by the weights in `kinds`, the set of limits from `tiers` of them.
 * A step only describes a call, such as "one unit more than remains", because the numbers depend on the answer before it. It moves
 * the clock (`to`, by `parts` of a window, and `off` microseconds beside that), chooses a policy or an earlier charge (`pick`), and
 * has a cost (`units` beside what `of` names) and a longest wait (`wait`, and `waitOff` microseconds beside that). Values that a
 * list has several times are drawn more often.
 */
export function traffic({ kinds, tiers = 1, most = 12 }: TrafficOptions): fc.Arbitrary<readonly Step[]> {
  const drawn = Object.entries(kinds).map(([kind, weight]) => ({
    weight,
    arbitrary: fc.constant(kind as Kind),
  }))
  const step = fc.record<Step>(
    {
      kind: fc.oneof(...drawn),
      tier: fc.nat({ max: tiers - 1 }),
      pick: fc.nat({ max: 3 }),
      to: fc.constantFrom('stay', 'stay', 'part', 'part', 'bucket', 'window', 'at', 'at', 'reset', 'idle'),
      parts: fc.integer({ min: 1, max: 12 }),
      off: fc.integer({ min: -1, max: 1 }),
      of: fc.constantFrom('nothing', 'nothing', 'nothing', 'remaining', 'capacity', 'half'),
      units: fc.integer({ min: -1, max: 4 }),
      wait: fc.constantFrom('windows', 'known'),
      waitOff: fc.integer({ min: -1, max: 1 }),
    },
    { noNullPrototype: true },
  )
  return fc.array(step, { maxLength: most })
}

/**
 * Instants at which a sequence starts: the epoch itself, odd ones, one of our days, and two of the days before clocks are moved: in
 * Berlin 02:30 is skipped the day after the first, and the second begins, at 02:30, a window of 25 hours.
 */
export const starts = fc.constantFrom(
  0,
  1,
  999_999,
  1_700_000_000_123_457,
  Date.UTC(2024, 2, 30, 1, 30) * 1000,
  Date.UTC(2024, 9, 27, 0, 30) * 1000,
)
