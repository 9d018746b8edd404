import { type Clock, keyspaceOver, type Store, StoreError, type Update } from '@sluice/core/store'

interface Kept {
  readonly state: Uint8Array
  readonly expiresAt: number
}

/** Keeps state in a Map while it matters, for as long as the process runs. */
export function mapStore(clock: Clock = () => Math.floor(performance.now() * 1000)): Store {
  const kept = new Map<string, Kept>()
  const closing = new AbortController()

  const now = () => {
    if (!closing.signal.aborted) return clock()
    throw new StoreError('CLOSED', 'the store is closed')
  }

  // Nothing runs in between in one process, so that a Map needs no lock.
  const update: Update = (id, change) => {
    const instant = now()
    const before = kept.get(id)?.state
    const { result, state, expiresAt } = change(before, instant)
    if (state === before) return result
    if (before === undefined) dropExpired(instant)
    if (state) kept.set(id, { state, expiresAt })
    else kept.delete(id)
    return result
  }

  /** Looks at two keys for each that is added, so that all are looked at in turn. One that still matters goes to the end. */
  function dropExpired(instant: number): void {
    let looks = 2
    for (const [id, each] of kept) {
      if (looks-- === 0) return
      kept.delete(id)
      if (each.expiresAt > instant) kept.set(id, each)
    }
  }

  return {
    local: true,
    keyspace: (...limiter) => keyspaceOver(update, ...limiter),
    now,
    closed: closing.signal,
    close: () => closing.abort(),
  }
}
