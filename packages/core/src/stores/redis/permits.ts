import { randomBytes } from 'node:crypto'
import {
  ALIVE_US,
  CLAIM_US,
  GRACE_US,
  PERMIT_STEPS,
  type Permits,
  type PermitStep,
  TICKET_STATES,
  type TicketState,
} from '../permits.js'
import type { Subscribe } from './redis-connection.js'
import { modules } from './script/modules.gen.js'
import { redisKey } from './keyspace.js'
import { packed, type ScriptRunner } from './script/wire.js'

export interface RedisPermitsOptions {
  /** The beginning of all keys and channels. */
  readonly keyspace: string
  readonly leaseMs: number
  readonly runner: ScriptRunner
  readonly subscribe: Subscribe | undefined
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly onClose: () => void
}

/**
 * The permits of one semaphore of this process in Redis. Each step is one call of lua/semaphore.lua. A granted permit is
 * announced on this semaphore's Pub/Sub channel.
 */
export class RedisPermits implements Permits {
  readonly #semaphore = randomBytes(9).toString('base64url')
  #unsubscribe: (() => void) | undefined

  constructor(readonly options: RedisPermitsOptions) {}

  /** Takes one step for some tickets of the semaphore, in one call of lua/semaphore.lua. Returns how they stand. */
  async ask(
    step: PermitStep,
    key: string,
    tickets: readonly number[],
    limit: number,
  ): Promise<readonly TicketState[]> {
    const { keyspace, leaseMs, runner, clock } = this.options
    const times = [leaseMs * 1000, CLAIM_US, ALIVE_US, GRACE_US, clock()]
    const words = [
      `${keyspace}:to:`,
      this.#semaphore,
      ...tickets.map((ticket) => `${this.#semaphore}:${ticket}`),
    ]
    const numbers = [PERMIT_STEPS.indexOf(step), limit, ...times]
    const argument = packed(numbers, Buffer.from(words.join('\n')))
    const reply = await runner.run(modules['semaphore']!, redisKey(keyspace, key), argument)
    return Array.from(reply, (digit) => TICKET_STATES[digit - ZERO]!)
  }

  /** Calls `granted` with each ticket that gets a permit while it waits, by messages of Redis. Some clients have none. */
  listen(granted: (ticket: number) => void): void {
    this.#unsubscribe ??= this.options.subscribe?.(
      `${this.options.keyspace}:to:${this.#semaphore}`,
      (message) => granted(Number(message.slice(this.#semaphore.length + 1))),
    )
  }

  /** Ends the messages. */
  close(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.options.onClose()
  }
}

const ZERO = '0'.charCodeAt(0)
