import { randomBytes } from 'node:crypto'
import type { Clock } from '../../values/clock.js'
import { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, type Permits, TICKET_STATES } from '../permits.js'
import { modules } from './script/modules.gen.js'
import { redisKey } from './keyspace.js'
import { packed, type ScriptRunner } from './script/wire.js'

/**
 * The permits of one semaphore of this process in Redis. Each step is one call of lua/semaphore.lua. A granted permit is
 * announced on this semaphore's Pub/Sub channel. `keyspace` begins all keys and channels; `clock` gives microseconds, or -1 for
 * Redis's own clock.
 */
export function redisPermits(
  keyspace: string,
  leaseMs: number,
  runner: ScriptRunner,
  clock: Clock,
  ended: (permits: Permits) => void,
): Permits {
  const semaphore = randomBytes(9).toString('base64url')
  let unsubscribe: (() => void) | undefined
  return {
    /** Takes one step for some tickets of the semaphore, in one call of lua/semaphore.lua. Returns how they stand. */
    async ask(step, key, tickets, limit) {
      const times = [leaseMs * 1000, CLAIM_US, ALIVE_US, GRACE_US, clock()]
      const words = [`${keyspace}:to:`, semaphore, ...tickets.map((ticket) => `${semaphore}:${ticket}`)]
      const numbers = [PERMIT_STEPS.indexOf(step), limit, ...times]
      const argument = packed(numbers, Buffer.from(words.join('\n')))
      const reply = await runner.run(modules['semaphore']!, redisKey(keyspace, key), argument)
      return Array.from(reply, (digit) => TICKET_STATES[digit - ZERO]!)
    },
    /** Calls `granted` with each ticket that gets a permit while it waits, by messages of Redis. Some clients have none. */
    listen(granted) {
      unsubscribe ??= runner.connection.subscribe?.(`${keyspace}:to:${semaphore}`, (message) =>
        granted(Number(message.slice(semaphore.length + 1))),
      )
    },
    /** Ends the messages. */
    close() {
      unsubscribe?.()
      unsubscribe = undefined
      ended(this)
    },
  }
}

const ZERO = '0'.charCodeAt(0)
