import type { KeyCount, SpaceSaving } from './space-saving.js'

/** The heaviest keys of a stream, or of several merged ones, as space-saving found them. */
export interface Summary {
  /** Items of the stream. */
  readonly total: number
  /** The most that a key that is not listed can have come, at most total / size. */
  readonly missed: number
  readonly keys: readonly KeyCount[]
}

/** The summary of what a counter of heavy keys holds now. It is a copy, which further calls do not change. */
export function summaryOf(counts: SpaceSaving): Summary {
  return { total: counts.total, missed: counts.missed, keys: [...counts] }
}

/**
 * Merges summaries of different streams into one of at most `size` keys, so that both laws still hold: `count - error <=
 * truth <= count`, and a key with more than total / size of all items is listed. `missed` of a summary is how often a key that it
 * does not list can have come at most.
 *
 * Three numbers are added up for each key: `upper`, the most that it can have come, `lower`, the least, and `rank`, by which keys are
 * chosen (a counter of Misra and Gries). If there are more than `size` keys, the rank of the first one too many is the cut, and only
 * keys of a higher rank stay. A key that is not listed then can have come at most as often as all `missed` and the cut together,
 * which is at most total / size (Agarwal, Cormode and others: Mergeable Summaries, 2012).
 */
export function mergeSummaries(summaries: readonly Summary[], size: number): Summary {
  const merged = new Map<string, { upper: number; lower: number; rank: number }>()
  const total = summaries.reduce((sum, summary) => sum + summary.total, 0)
  const missed = summaries.reduce((sum, summary) => sum + summary.missed, 0)
  for (const summary of summaries) {
    for (const { key, count, error } of summary.keys) {
      // `upper` begins with the `missed` of all summaries; each that lists the key has its own replaced by the count.
      const bounds = merged.get(key) ?? { upper: missed, lower: 0, rank: 0 }
      const countAboveMissed = count - summary.missed
      bounds.upper += countAboveMissed
      bounds.lower += count - error
      bounds.rank += countAboveMissed
      merged.set(key, bounds)
    }
  }
  const ranked = [...merged].sort(([, a], [, b]) => b.rank - a.rank)
  const firstTooMany = ranked[size]
  const cut = firstTooMany ? firstTooMany[1].rank : 0
  const kept = firstTooMany ? ranked.filter(([, { rank }]) => rank > cut) : ranked
  const keys = kept.map(([key, { upper, lower }]) => ({ key, count: upper, error: upper - lower }))
  return { total, missed: missed + cut, keys }
}
