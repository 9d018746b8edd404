import { randomBytes } from 'node:crypto'
import type { Clock } from '../../values/clock.js'
import { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, type Permits, TICKET_STATES } from '../permits.js'
import { modules } from './script/modules.gen.js'
import { redisKey } from './key.js'
import type { ScriptRunner } from './script/runner.js'
import { packed, REDIS_TIME } from './script/wire.js'

/**
 * The permits of one semaphore of this process in Redis. Each step is one call of lua/semaphore.lua. A granted permit is
 * announced on this semaphore's Pub/Sub channel. `keyspace` begins all keys and channels; `clock` gives microseconds; undefined is
 * Redis's own clock.
 */
export function redisPermits(
  keyspace: string,
  leaseMs: number,
  runner: ScriptRunner,
  clock: Clock | undefined,
  ended: (permits: Permits) => void,
): Permits {
  const semaphore = randomBytes(9).toString('base64url')
  let unsubscribe: (() => void) | undefined
  return {
    /**
     * Takes one step (`take`, `wait`, `poll`, `renew` or `release`) for tickets of this semaphore, which are numbers of its
     * calls, in one call of lua/semaphore.lua. Returns how each stands after it: unknown, waiting or held. `limit` is this
     * semaphore's: its tickets get permits of the key only while fewer are held. Times are microseconds.
     */
    async ask(step, key, tickets, limit) {
      const times = [leaseMs * 1000, CLAIM_US, ALIVE_US, GRACE_US, clock?.() ?? REDIS_TIME]
      const words = [`${keyspace}:to:`, semaphore, ...tickets.map((ticket) => `${semaphore}:${ticket}`)]
      const numbers = [PERMIT_STEPS.indexOf(step), limit, ...times]
      const argument = packed(numbers, Buffer.from(words.join('\n')))
      const reply = await runner.run(modules['semaphore']!, redisKey(keyspace, key), argument)
      return Array.from(reply, (digit) => TICKET_STATES[digit - ZERO]!)
    },
    /**
     * Calls `granted` with the number of each waiting ticket that gets a permit, by messages of Redis on the channel of this
     * semaphore. Clients that cannot subscribe have none; the semaphore also polls.
     */
    listen(granted) {
      unsubscribe ??= runner.connection.subscribe?.(`${keyspace}:to:${semaphore}`, (message) =>
        granted(Number(message.slice(semaphore.length + 1))),
      )
    },
    /** Ends the messages, and reports to the store that these permits are closed. Permits that are held stay held. */
    close() {
      unsubscribe?.()
      unsubscribe = undefined
      ended(this)
    },
  }
}

const ZERO = '0'.charCodeAt(0)
