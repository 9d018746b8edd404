import { Buffer } from 'node:buffer' // the global is a getter
import type { Clock } from '../../values/clock.js'
import type { RecordChanges, Records, StoredRecord } from '../store.js'
import { redisKey } from './key.js'
import { modules } from './script/modules.gen.js'
import type { ScriptRunner } from './script/runner.js'
import { packed, REDIS_TIME } from './script/wire.js'

/**
 * Makes the records of a store: one hash in Redis, whose key begins with `keyspace`. A write or a read is one call of
 * lua/records.lua. `clock` returns microseconds; undefined is Redis's own clock.
 */
export function redisRecords(keyspace: string, runner: ScriptRunner, clock: Clock | undefined): Records {
  const run = (numbers: readonly number[], ...words: readonly Buffer[]): Promise<Buffer> => {
    const argument = packed([clock?.() ?? REDIS_TIME, ...numbers], Buffer.concat(words))
    return runner.run(modules['records']!, redisKey(keyspace, ''), argument)
  }
  return {
    async write({ id, text, until, life, most }, since) {
      const name = Buffer.from(id)
      const reply = await run([since, until, life, most, name.length], name, Buffer.from(text))
      return reply.length > 0 ? changesIn(reply) : undefined
    },
    read: async (since, seen) => changesIn(await run([since, 0, 0, 0, 0], Buffer.from(seen.join('\0')))),
  }
}

/** Reads the changes in a reply: three numbers, and of each record, the newest first, five numbers, its id and its text. */
function changesIn(reply: Buffer): RecordChanges {
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
  const areAll = numberAt(16) === 1
  return { version: numberAt(0), now: numberAt(8), areAll, records: records.reverse() }
}
