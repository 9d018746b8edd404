import { randomBytes } from 'node:crypto'
import type { Clock } from '../../values/clock.js'
import { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, type Permits, TICKET_STATES } from '../permits.js'
import { modules } from './script/modules.gen.js'
import { redisKey } from './key.js'
import type { ScriptRunner } from './script/runner.js'
import { packed, REDIS_TIME } from './script/wire.js'

/**
 * The permits of one semaphore of this process in Redis. Each step is one call of lua/semaphore.lua. A permit that a waiting call
 * gets is announced on the semaphore's Pub/Sub channel. `keyspace` is the beginning of all keys and channels. `clock` returns
 * microseconds; without it Redis's own clock counts. `ended` is called on `close`.
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
     * Takes one step for tickets of a key, and returns the state of each: unknown, waiting or held. A ticket is the number of a
     * call. `take` asks for a free permit, `wait` also queues for one, `poll` keeps waiting tickets in the queue, `renew` extends
     * held permits, and `release` frees permits and places in the queue. A permit is granted while fewer than `limit` are held.
     * The times, in microseconds: how long a permit lasts; how long one granted to a waiting ticket lasts until its call has
     * noticed it (CLAIM_US); how long a place in the queue lasts without a poll (ALIVE_US); and for how long after a loss of data
     * only `renew` gets permits (GRACE_US).
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
