/**
 * Calls `listener` when the signal aborts. Returns a function that removes it. All listeners share one on the signal, because
 * Node warns of a leak above ten.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listeners = listenersOf(signal)
  listeners.add(listener)
  return () => {
    // Once this set was empty, the signal may have another, which a second removal must leave alone.
    if (listeners.delete(listener) && listeners.size === 0) endOf.get(signal)?.()
  }
}

const endOf = new WeakMap<AbortSignal, () => void>()
const known = new WeakMap<AbortSignal, Set<() => void>>()

function listenersOf(signal: AbortSignal): Set<() => void> {
  const before = known.get(signal)
  if (before) return before
  const listeners = new Set<() => void>()
  const abort = (): void => {
    for (const listener of listeners) listener()
  }
  signal.addEventListener('abort', abort)
  known.set(signal, listeners)
  endOf.set(signal, () => {
    signal.removeEventListener('abort', abort)
    known.delete(signal)
  })
  return listeners
}
