/** What a process asked for and got. Travels from there to the one that shows it. */
export interface Tally {
  /** Calls that were answered. */
  asked: number
  allowed: number
  refused: number
  /** Calls that Redis did not decide. */
  failed: number
  /** Instants of `Date.now()`, the same clock for all; 0 before the first call. */
  firstAskedAt: number
  lastAnsweredAt: number
}

export function emptyTally(): Tally {
  return { asked: 0, allowed: 0, refused: 0, failed: 0, firstAskedAt: 0, lastAnsweredAt: 0 }
}

export function total(tallies: readonly Tally[]): Tally {
  const begun = tallies.filter(({ firstAskedAt }) => firstAskedAt > 0)
  const sum = (of: 'asked' | 'allowed' | 'refused' | 'failed'): number =>
    tallies.reduce((count, tally) => count + tally[of], 0)
  return {
    asked: sum('asked'),
    allowed: sum('allowed'),
    refused: sum('refused'),
    failed: sum('failed'),
    firstAskedAt: begun.length > 0 ? Math.min(...begun.map(({ firstAskedAt }) => firstAskedAt)) : 0,
    lastAnsweredAt: Math.max(0, ...tallies.map(({ lastAnsweredAt }) => lastAnsweredAt)),
  }
}
