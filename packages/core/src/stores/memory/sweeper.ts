import { heldWeakly } from '../../values/weak-values.js'

/**
 * Calls `sweep` from time to time while its owner lives. The timer keeps neither the process nor the owner alive, so a store
 * that was never closed can be collected. Returns a function that stops it.
 */
export function sweepInBackground(owner: Sweepable): () => void {
  const weak = heldWeakly(owner)
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
  /** Does a small slice of work. Returns whether more is likely. */
  sweep(): boolean
}

const IDLE_MS = 1000
const BUSY_MS = 5
