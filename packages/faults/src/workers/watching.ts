import { existsSync } from 'node:fs'
import { memoryStore } from '@sluice/core'
import { limiterFrom } from '@sluice/policies'
import { watchPolicies } from '@sluice/policies/node'
import { serve } from './fleet-member.js'

/* One process that decides by a policy file while it is written, for row 49. */

export interface WatchingJob {
  readonly path: string
  /** A file that ends the decisions once it is there. */
  readonly end: string
  readonly everyMs: number
}

export interface WatchingResult {
  readonly decisions: number
  /** Decisions of no good file, by its limit, which is not the same three digits twice; 0 for a file with errors. */
  readonly wrong: Readonly<Record<number, number>>
  /** How many limits decided. */
  readonly limits: number
  /** How many files were refused or not read. */
  readonly errors: number
  readonly last: number
}

serve<WatchingJob, WatchingResult>(async ({ path, end, everyMs }) => {
  const watched = watchPolicies(path, { every: everyMs, onError: () => {} })
  await watched.ready()
  const limiter = limiterFrom(watched, 'api', { store: memoryStore() })
  return async () => {
    let decisions = 0
    const wrong: Record<number, number> = {}
    let last = 0
    const limits = new Set<number>()
    while (!existsSync(end)) {
      for (let i = 0; i < 50; i++) {
        const { limit } = await limiter.consume(`key ${i}`)
        decisions++
        const hasErrors = watched.current.errors.length > 0
        const of = hasErrors ? 0 : limit
        if (hasErrors || Math.floor(limit / 1000) !== limit % 1000) wrong[of] = 1 + (wrong[of] ?? 0)
        limits.add(limit)
        last = limit
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    watched.close()
    await limiter.close()
    return { decisions, wrong, limits: limits.size, errors: watched.errors, last }
  }
})
