/**
 * Calls `listener` when the signal aborts. Returns a function that removes it. All listeners share one on the signal, because
 * Node warns of a leak above ten.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const shared = known.get(signal) ?? sharedOn(signal)
  shared.listeners.add(listener)
  return () => {
    // A set that was emptied is left alone: the signal may have another since.
    if (!shared.listeners.delete(listener) || shared.listeners.size > 0) return
    signal.removeEventListener('abort', shared.abort)
    known.delete(signal)
  }
}

interface SharedListener {
  readonly listeners: Set<() => void>
  readonly abort: () => void
}

const known = new WeakMap<AbortSignal, SharedListener>()

function sharedOn(signal: AbortSignal): SharedListener {
  const listeners = new Set<() => void>()
  const abort = (): void => listeners.forEach((listener) => listener())
  signal.addEventListener('abort', abort)
  const shared = { listeners, abort }
  known.set(signal, shared)
  return shared
}
