import { Buffer } from 'node:buffer' // the global is a getter
import type { Clock } from '../../values/clock.js'
import type { Board } from '../store.js'
import { redisKey } from './key.js'
import { modules } from './script/modules.gen.js'
import type { ScriptRunner } from './script/runner.js'
import { packed, REDIS_TIME } from './script/wire.js'

/**
 * Makes a board, on which processes leave texts for each other, such as the counts of their most frequent keys. An author's new
 * text replaces the last one, and each text expires after its life. All are in one hash in Redis, whose key begins with
 * `keyspace`. A post or a read is one call of lua/board.lua, which takes a life of 0 for a read. `clock` returns microseconds;
 * undefined is Redis's own clock.
 */
export function redisBoard(keyspace: string, runner: ScriptRunner, clock: Clock | undefined): Board {
  /**
   * Runs lua/board.lua, which posts `text` for `author`, or with a life of 0 reads all texts. The author and the text are sent as
   * one piece, behind three numbers. The last number is the author's length in bytes, at which the script parts the two.
   */
  const run = (lifeMs: number, author: string, text: string): Promise<Buffer> => {
    const [from, words] = [Buffer.from(author), Buffer.from(text)]
    const numbers = [lifeMs * 1000, clock?.() ?? REDIS_TIME, from.length]
    const argument = packed(numbers, Buffer.concat([from, words]))
    return runner.run(modules['board']!, redisKey(keyspace, ''), argument)
  }
  return {
    post: async (author, text, lifeMs) => {
      await run(lifeMs, author, text)
    },
    read: async () => textsOf(await run(0, '', '')),
  }
}

/**
 * Returns the texts in a reply of lua/board.lua, one after the other: before each stands its length in bytes, as a number of 8
 * bytes.
 */
function textsOf(reply: Buffer): readonly string[] {
  const texts: string[] = []
  for (let from = 0; from < reply.length;) {
    const start = from + 8
    const end = start + reply.readDoubleLE(from)
    texts.push(reply.toString('utf8', start, end))
    from = end
  }
  return texts
}
