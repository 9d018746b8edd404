import {
  guard,
  keyspaceOver,
  type Store,
  type Update,
  type UpdateMany,
  type Updates,
} from '@sluice/core/store'
import { conformance } from '@sluice/testing'

/*
 * Stores that are somewhere else: each operation is several steps, between which others run. One locks the key, one
 * compares before it writes and begins again, and one does so for many keys at a time.
 */
const overUpdate = (update: Updates, now: () => number): Store => ({
  guard,
  keyspace: (...limiter) => keyspaceOver(update, ...limiter),
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

function comparingManyStore(now: () => number): Store {
  const states = new Map<string, Uint8Array>()
  const updateMany: UpdateMany = async (ids, change, { allOrNone }) => {
    const before = ids.map((id) => states.get(id))
    await later()
    const after = change(before, now())
    await later()
    const lost = ids.filter((id, i) => states.get(id) !== before[i])
    if (allOrNone && lost.length > 0) return ids
    for (const [i, id] of ids.entries()) {
      const { state } = after[i]!
      if (lost.includes(id)) continue
      if (state) states.set(id, state)
      else states.delete(id)
    }
    return lost
  }
  return overUpdate({ updateMany }, now)
}

conformance('a store that locks', lockingStore, { sequences: 200 })
conformance('a store that compares and sets', comparingStore, { sequences: 200 })
conformance('a store that compares and sets many', comparingManyStore, { sequences: 200 })
