import { bytesInUse } from './heap.js'
import { median } from './statistics.js'

export interface Sample {
  readonly atMs: number
  readonly bytes: number
  /** The handles that keep the process alive, by kind. */
  readonly resources: string
}

/** The bytes in use now, after a collection, and what keeps the process alive. */
export function sample(): Sample {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const resources = [...counts].map(([kind, count]) => `${count} ${kind}`).sort()
  return { atMs: performance.now(), bytes: bytesInUse(), resources: resources.join(', ') || 'none' }
}

/** How fast the heap grows, in kB a minute: the median of the slopes between any two samples, which one late collection does not move. */
export function kbPerMinute(samples: readonly Sample[]): number {
  const slopes = samples.flatMap((a, i) =>
    samples.slice(i + 1).map((b) => (b.bytes - a.bytes) / 1000 / ((b.atMs - a.atMs) / 60_000)),
  )
  return median(slopes)
}
