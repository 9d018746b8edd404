import { clearTimer, setTimer } from './clock.js'

/** Resolves after `ms` milliseconds, or rejects when the signal aborts. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimer(() => (stopListening?.(), resolve()), ms)
    const stopListening = signal && onAbort(signal, () => (clearTimer(timer), reject(signal.reason)))
  })
}

/**
 * Calls `listener` when the signal aborts, or in the next microtask if it has aborted. Returns a function that removes the listener.
 * The signal itself has one listener, which calls all of these, because Node warns of a leak above ten. It is removed with the last
 * of them.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    // A signal that has aborted calls no listener any more.
    let isRemoved = false
    queueMicrotask(() => isRemoved || listener())
    return () => void (isRemoved = true)
  }
  const shared = known.get(signal) ?? addShared(signal)
  shared.listeners.add(listener)
  return () => {
    // With the last listener the signal's own is removed. A second call does nothing, as that may be another one by then.
    if (!shared.listeners.delete(listener) || shared.listeners.size > 0) return
    signal.removeEventListener('abort', shared.abort)
    known.delete(signal)
  }
}

const known = new WeakMap<AbortSignal, ReturnType<typeof addShared>>()

/**
 * Puts one listener on the signal, which calls all functions in `listeners` when the signal aborts. `onAbort` adds to the set,
 * and removes the one listener, `abort`, when the set is empty.
 */
function addShared(signal: AbortSignal): { readonly listeners: Set<() => void>; readonly abort: () => void } {
  const listeners = new Set<() => void>()
  const abort = (): void => listeners.forEach((listener) => listener())
  signal.addEventListener('abort', abort)
  const shared = { listeners, abort }
  known.set(signal, shared)
  return shared
}
