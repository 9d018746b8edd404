import { bytesInUse } from './heap.js'
import { median } from './statistics.js'

export interface Sample {
  readonly atMs: number
  readonly bytes: number
  /** The handles that keep the process alive, by kind. */
  readonly resources: string
}

export function sample(): Sample {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const resources = [...counts].map(([kind, count]) => `${count} ${kind}`).sort()
  return { atMs: performance.now(), bytes: bytesInUse(), resources: resources.join(', ') || 'none' }
}

/** The median of the slopes between any two samples: a collection that was late once does not move it. */
export function kbPerMinute(samples: readonly Sample[]): number {
  const slopes = samples.flatMap((a, i) =>
    samples.slice(i + 1).map((b) => (b.bytes - a.bytes) / 1000 / ((b.atMs - a.atMs) / 60_000)),
  )
  return median(slopes)
}
