import { Buffer } from 'node:buffer' // the global is a getter
import type { Clock } from '../../values/clock.js'
import type { RecordChanges, Records, StoredRecord } from '../store.js'
import { redisKey } from './key.js'
import { modules } from './script/modules.gen.js'
import type { ScriptRunner } from './script/runner.js'
import { packed, REDIS_TIME } from './script/wire.js'

/**
 * Makes what writes and reads the records of operators, all in one hash in Redis, whose key begins with `keyspace`. A write or a
 * read is one call of lua/records.lua; all records come in pages, a call for each. `clock` returns microseconds; undefined is
 * Redis's own clock.
 */
export function redisRecords(keyspace: string, runner: ScriptRunner, clock: Clock | undefined): Records {
  const run = (numbers: readonly number[], ...words: readonly Buffer[]): Promise<Buffer> => {
    const argument = packed([clock?.() ?? REDIS_TIME, ...numbers], Buffer.concat(words))
    return runner.run(modules['records']!, redisKey(keyspace, ''), argument)
  }
  const read = async (since: number, cursor = 0, seen = ''): Promise<Reply> =>
    replyOf(await run([since, cursor, 0, 0, 0], Buffer.from(seen)))

  /** What a reply says. If it is the first page of all records (its cursor is above 0), the other pages are read too. */
  const changesFrom = async (first: Reply): Promise<RecordChanges> => {
    const { version, records } = first
    if (first.cursor <= 0) return { ...first, areAll: first.cursor === 0 }
    for (let { cursor } = first; cursor > 0;) {
      const page = await read(version, cursor)
      cursor = page.cursor
      records.push(...page.records)
    }
    // A page does not have what was written after it, and may have again what an earlier one had: the changes since are added.
    const changesSince = await read(version)
    if (changesSince.cursor !== CHANGES) return changesFrom(changesSince)
    const byId = new Map(records.map((record) => [record.id, record]))
    for (const record of changesSince.records) {
      const isRemoved = record.text === ''
      if (isRemoved) byId.delete(record.id)
      else if (byId.get(record.id)?.version !== record.version) byId.set(record.id, record)
    }
    return { ...changesSince, areAll: true, records: [...byId.values()] }
  }

  return {
    async write({ id, text, until, life, most }, since) {
      const name = Buffer.from(id)
      const reply = await run([since, until, life, most, name.length], name, Buffer.from(text))
      if (reply.length === 0) return undefined
      const first = replyOf(reply)
      return { ...(await changesFrom(first)), written: first.version }
    },
    read: async (since, seen) => changesFrom(await read(since, 0, seen.join('\0'))),
  }
}

/** The cursor of a reply that has the changes since a version. */
const CHANGES = -1

interface Reply {
  readonly version: number
  readonly now: number
  readonly cursor: number
  /** The oldest change first. */
  readonly records: StoredRecord[]
}

/**
 * Reads a reply of lua/records.lua. It begins with three numbers of 8 bytes: the version of the latest write, the time, and the cursor
 * of the next page. Then comes each record: five numbers (its version, its end, when it last applied, and the bytes of its id and of
 * its text), its id and its text. The newest is first in the reply, and last in the result.
 */
function replyOf(reply: Buffer): Reply {
  const numberAt = (place: number): number => reply.readDoubleLE(place)
  const records: StoredRecord[] = []
  for (let at = 24; at < reply.length;) {
    const start = at + 40
    const end = start + numberAt(at + 24)
    const after = end + numberAt(at + 32)
    const [version, until, appliedAt] = [numberAt(at), numberAt(at + 8), numberAt(at + 16)]
    const texts = { id: reply.toString('utf8', start, end), text: reply.toString('utf8', end, after) }
    records.push({ ...texts, version, until, appliedAt })
    at = after
  }
  return { version: numberAt(0), now: numberAt(8), cursor: numberAt(16), records: records.reverse() }
}
