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
  /** Reads the changes in a reply, and where all records come in pages, the further pages. What changes meanwhile is read next. */
  const read = async (reply: Buffer): Promise<RecordChanges> => {
    const all = new Map<string, StoredRecord>()
    const [version, now, areAll, first] = numbersAt(reply, 0)
    readInto(all, reply)
    for (let cursor = first!; cursor > 0;) {
      const page = await run([0, 0, 0, 0, 0, cursor])
      readInto(all, page)
      cursor = numbersAt(page, 0)[3]!
    }
    return { version: version!, now: now!, areAll: areAll === 1, records: [...all.values()] }
  }
  return {
    async write({ id, text, until, life, most }, since) {
      const name = Buffer.from(id)
      const reply = await run([since, until, life, most, name.length, 0], name, Buffer.from(text))
      return reply.length > 0 ? read(reply) : undefined
    },
    read: async (since, applied) => read(await run([since, 0, 0, 0, 0, 0], Buffer.from(applied.join('\0')))),
  }
}

/** Adds the records of a reply to those of earlier pages. When one last applied stands beside it, maybe on another page. */
function readInto(all: Map<string, StoredRecord>, reply: Buffer): void {
  for (let at = HEADER; at + HEADER <= reply.length;) {
    const [version, until, idBytes, textBytes] = numbersAt(reply, at)
    const start = at + HEADER
    const id = reply.toString('utf8', start, start + idBytes!)
    at = start + idBytes! + textBytes!
    const known = all.get(id) ?? { id, text: '', version: 0, until: 0, appliedAt: 0 }
    const text = reply.toString('utf8', start + idBytes!, at)
    all.set(
      id,
      version! < 0 ? { ...known, appliedAt: until! } : { ...known, text, version: version!, until: until! },
    )
  }
}

/** The four numbers of the head of a reply, or of an entry. */
function numbersAt(reply: Buffer, at: number): readonly number[] {
  return Array.from({ length: 4 }, (_, i) => reply.readDoubleLE(at + 8 * i))
}

const HEADER = 32
