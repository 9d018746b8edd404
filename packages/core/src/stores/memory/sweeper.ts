/**
 * Calls `sweep` now and then for as long as its owner lives. The timer keeps neither the process nor the owner
 * alive: a store that is forgotten without `close` can be collected. Returns what stops it.
 */
export function sweepInBackground(owner: Sweepable): () => void {
  // Workers of Cloudflare have none under compatibility dates before May 2025.
  const weak = typeof WeakRef === 'function' ? new WeakRef(owner) : { deref: () => owner }
  let timer: ReturnType<typeof setTimeout>
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      const alive = weak.deref()
      if (alive) schedule(alive.sweep() ? BUSY_MS : IDLE_MS)
    }, delayMs)
    timer.unref?.()
  }
  schedule(IDLE_MS)
  return () => clearTimeout(timer)
}

export interface Sweepable {
  /** Does a small slice of work; true when there is likely more of it. */
  sweep(): boolean
}

const IDLE_MS = 1000
const BUSY_MS = 5
