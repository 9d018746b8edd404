import { createLimiter, type Decision, memoryStore } from '@sluice/core'
import { START_MS } from '../limits.js'
import type { ColumnResult } from '../run.js'
import type { ReadColumn, ReadScenario } from '../scenario.js'

/**
 * Decides the calls of a result once more, by a limiter and nothing of the playground. Returns the first call that is answered
 * otherwise. Calls that wait, or are served from leases, are compared only in what their store decides of them.
 */
export async function replayed(
  { settings }: ReadScenario,
  column: ReadColumn,
  result: ColumnResult,
): Promise<{ readonly different: number | undefined }> {
  if (column.leases) return { different: undefined }
  let now = 0
  const store = memoryStore({ clock: () => Math.round((START_MS + now) * 1000) })
  const { policies, penalty, maxWait } = column
  const limiter = createLimiter({ name: 'api', policies, store, ...(penalty && { penalty }) })
  const settling: { at: number; decision: Decision }[] = []
  try {
    for (const [i, at] of result.at.entries()) {
      for (; settling.length > 0 && settling[0]!.at <= at;) {
        const { at: then, decision } = settling.shift()!
        now = then
        void decision.settle(settings.real!)
      }
      now = at
      if (maxWait !== undefined) continue
      const decision = limiter.decide(`key-${result.key[i]}`, { cost: result.cost[i]! }) as Decision
      const same =
        Number.isNaN(result.turn[i]) === !decision.allowed &&
        result.retryAfterMs[i] === decision.retryAfterMs &&
        result.remaining[i] === decision.remaining &&
        result.resetAfterMs[i] === decision.resetAfterMs
      if (!same) return { different: i }
      if (decision.allowed && settings.real !== undefined && settings.real !== result.cost[i])
        settling.push({ at: at + settings.takes, decision })
    }
    return {
      different: maxWait === undefined && result.turn.some((turn, i) => turn > result.at[i]!) ? 0 : undefined,
    }
  } finally {
    await limiter.close()
    await store.close()
  }
}
