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
    read: async (since, applied) =>
      changesIn(await run([since, 0, 0, 0, 0], Buffer.from(applied.join('\0')))),
  }
}

/** Reads the reply of lua/records.lua: three numbers, then of each record five, its id and its text. */
function changesIn(reply: Buffer): RecordChanges {
  const records: StoredRecord[] = []
  let at = 24
  while (at < reply.length) {
    const [version, until, appliedAt, id, text] = Array.from({ length: 5 }, (_, i) =>
      reply.readDoubleLE(at + 8 * i),
    )
    const [start, end] = [at + 40, at + 40 + id!]
    at = end + text!
    const texts = { id: reply.toString('utf8', start, end), text: reply.toString('utf8', end, at) }
    records.push({ ...texts, version: version!, until: until!, appliedAt: appliedAt! })
  }
  const [version, now, areAll] = [0, 8, 16].map((offset) => reply.readDoubleLE(offset))
  return { version: version!, now: now!, areAll: areAll === 1, records }
}
