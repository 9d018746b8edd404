import type { Clock } from '../../values/clock.js'
import { LOGGED_CHANGES, type RecordChanges, type Records, type StoredRecord } from '../store.js'

/** Makes the records of a store in this process. `now` returns microseconds. */
export function memoryRecords(now: Clock): Records {
  /** By group and id. */
  const groups = new Map<string, Map<string, StoredRecord>>()
  const groupOf = (id: string): Map<string, StoredRecord> => {
    const name = id.slice(0, id.indexOf('\n'))
    const group = groups.get(name) ?? new Map<string, StoredRecord>()
    groups.set(name, group)
    return group
  }
  /** The newest changes, the oldest first. */
  const log: StoredRecord[] = []
  let version = 0
  const changes = (since: number): RecordChanges => {
    const from = log.findLastIndex((change) => change.version === since) + 1
    const areAll = from === 0 && since !== version
    const records = areAll ? [...groups.values()].flatMap((group) => [...group.values()]) : log.slice(from)
    return { version, now: now(), areAll, records }
  }
  return {
    write({ id, text, until, life, most }, since) {
      const [at, group] = [now(), groupOf(id)]
      if (text !== '' && !group.has(id) && group.size >= most) return undefined
      if (text === '' && !group.has(id)) return changes(since)
      version = Math.max(version + 1, at)
      const record = { id, text, version, until: until || at + life, appliedAt: 0 }
      if (text === '') group.delete(id)
      else group.set(id, record)
      if (log.push(record) > LOGGED_CHANGES) log.shift()
      return { ...changes(since), written: version }
    },
    read(since, seen) {
      const at = now()
      for (const id of seen) {
        const record = groupOf(id).get(id)
        if (record && record.until <= at) groupOf(id).delete(id)
        else if (record) groupOf(id).set(id, { ...record, appliedAt: at })
      }
      return changes(since)
    },
  }
}
