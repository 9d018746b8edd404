import type { Clock } from '../../values/clock.js'
import { LOGGED_CHANGES, type RecordChanges, type Records, type StoredRecord } from '../store.js'

/** Makes the records of a store in this process. `now` returns microseconds. */
export function memoryRecords(now: Clock): Records {
  const held = new Map<string, StoredRecord>()
  const sizes = new Map<string, number>()
  /** Of the newest changes the version and the id, the oldest first. */
  const log: (readonly [version: number, id: string])[] = []
  let version = 0
  /** Adds one to the size of the group of an id, or takes one from it, and returns it. */
  const count = (id: string, change: number): number => {
    const group = id.slice(0, id.indexOf('\n'))
    const size = (sizes.get(group) ?? 0) + change
    sizes.set(group, size)
    return size
  }
  const remove = (id: string): unknown => held.delete(id) && count(id, -1)
  const read = (since: number): RecordChanges => {
    const known = log.findLastIndex(([each]) => each === since)
    const areAll = known < 0 && since !== version
    const ids = areAll ? held.keys() : new Set(log.slice(known + 1).map(([, id]) => id))
    const gone = { text: '', version, until: 0, appliedAt: 0 }
    const records = since === version ? [] : Array.from(ids, (id) => held.get(id) ?? { id, ...gone })
    return { version, now: now(), areAll, records }
  }
  return {
    write({ id, text, until, life, most }, since) {
      const at = now()
      const isNew = text !== '' && !held.has(id)
      if (isNew && count(id, 0) >= most)
        for (const [other, { until: end }] of held) if (end <= at) remove(other)
      if (isNew && count(id, 0) >= most) return undefined
      if (text === '' && !held.has(id)) return read(since)
      version = Math.max(version + 1, at)
      remove(id)
      if (text !== '') {
        held.set(id, { id, text, version, until: until || at + life, appliedAt: 0 })
        count(id, 1)
      }
      if (log.push([version, id]) > LOGGED_CHANGES) log.shift()
      return read(since)
    },
    read(since, applied) {
      const appliedAt = now()
      for (const id of applied) if (held.has(id)) held.set(id, { ...held.get(id)!, appliedAt })
      return read(since)
    },
  }
}
