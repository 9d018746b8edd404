import type { Clock } from '../../values/clock.js'
import { LOGGED_CHANGES, type RecordChanges, type Records, type StoredRecord } from '../store.js'

/**
 * Makes the records of a store in this process. A record is what an operator has set for one key: an override of its limits, a block
 * or a hold. Its id names the group (the kind and the limiter) in the first line, then the key. Each write has a version, by which a
 * reader asks for all that is newer. A removal is a record without text. `now` returns microseconds.
 */
export function memoryRecords(now: Clock): Records {
  /** The records that stand, by group and id. */
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
  /** The changes after the version `since`; all records if `since` is no version that the log still has. */
  const changes = (since: number): RecordChanges => {
    const from = log.findLastIndex((change) => change.version === since) + 1
    const areAll = from === 0 && since !== version
    const records = areAll ? [...groups.values()].flatMap((group) => [...group.values()]) : log.slice(from)
    return { version, now: now(), areAll, records }
  }
  return {
    /**
     * Writes or removes a record that lasts until `until`, or for `life` microseconds if that is 0. Returns the changes after `since`;
     * undefined, with nothing written, if the group has `most` records.
     */
    write({ id, text, until, life, most }, since) {
      const [at, group] = [now(), groupOf(id)]
      if (text !== '' && !group.has(id) && group.size >= most) return undefined
      version = Math.max(version + 1, at)
      const record = { id, text, version, until: until || at + life, appliedAt: 0 }
      if (text === '') group.delete(id)
      else group.set(id, record)
      if (log.push(record) > LOGGED_CHANGES) log.shift()
      return { ...changes(since), written: version }
    },
    /** Returns the changes after `since`. Of the records `seen`, those that have ended are dropped; the others were applied now. */
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
