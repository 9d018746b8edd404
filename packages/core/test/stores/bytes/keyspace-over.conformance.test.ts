import { keyspaceOver, type Store, type Update } from '@sluice/core/store'
import { conformance } from '@sluice/testing'

/*
 * Stores that are somewhere else: each operation is several steps, between which others run. One locks the key, the other
 * compares before it writes and begins again.
 */
const overUpdate = (update: Update, now: () => number): Store => ({
  keyspace: (name, policies, report, penalty) => keyspaceOver(update, name, policies, report, penalty),
  now,
  close() {},
})

/** Lets others run. */
const later = () => Promise.resolve()

function lockingStore(now: () => number): Store {
  const states = new Map<string, Uint8Array>()
  const locks = new Map<string, Promise<unknown>>()
  const update: Update = (id, change) => {
    const work = async () => {
      await later()
      const before = states.get(id)
      const { result, state } = change(before, now())
      await later()
      if (state) states.set(id, state)
      else states.delete(id)
      return result
    }
    const turn = (locks.get(id) ?? Promise.resolve()).then(work)
    locks.set(id, turn)
    return turn
  }
  return overUpdate(update, now)
}

function comparingStore(now: () => number): Store {
  const states = new Map<string, Uint8Array>()
  const update: Update = async (id, change) => {
    for (;;) {
      const before = states.get(id)
      await later()
      const { result, state } = change(before, now())
      await later()
      if (states.get(id) !== before) continue
      if (state) states.set(id, state)
      else states.delete(id)
      return result
    }
  }
  return overUpdate(update, now)
}

conformance('a store that locks', lockingStore, { sequences: 200 })
conformance('a store that compares and sets', comparingStore, { sequences: 200 })
