import type { Limiter } from '@sluice/core'

export interface Traffic {
  /** Instants of `performance.now()` at which an admission became known. */
  readonly admissions: readonly number[]
  /** How many calls rejected, by their error's code. */
  readonly failures: ReadonlyMap<string, number>
  /** Resolves when every call is settled. */
  stop(): Promise<void>
}

/**
 * Begins to call a key about once each millisecond, whatever became of the calls before, and notes what was admitted and
 * what failed.
 */
export function startTraffic(limiter: Limiter, key: string): Traffic {
  const admissions: number[] = []
  const failures = new Map<string, number>()
  const pending = new Set<Promise<void>>()
  const call = async (): Promise<void> => {
    try {
      if ((await limiter.consume(key)).allowed) admissions.push(performance.now())
    } catch (error) {
      const code = (error as { code?: string }).code ?? String(error)
      failures.set(code, (failures.get(code) ?? 0) + 1)
    }
  }
  const timer = setInterval(() => {
    const called = call().finally(() => pending.delete(called))
    pending.add(called)
  }, 1).unref()
  return {
    admissions,
    failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
    },
  }
}

/** The units that may be lost when a master dies: rate x (lag + 50 ms), by what was admitted in just that time. */
export function mayBeLost({ admissions }: Traffic, diedAt: number, lagMs: number): number {
  return admissions.filter((at) => at > diedAt - lagMs - 50 && at < diedAt + 50).length
}
