import { randomBytes } from 'node:crypto'
import { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, TICKET_STATES } from '../permits.js'
import type { Permits, PermitStep, TicketState } from '../permits.js'
import type { Subscribe } from './redis-connection.js'
import { modules } from './script/modules.gen.js'
import { keyspaceOf, redisKey } from './redis-key.js'
import type { ScriptRunner } from './script/script-runner.js'
import { packed } from './script/wire.js'

export interface RedisPermitsOptions {
  readonly prefix: string
  readonly name: string
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
  readonly #options: RedisPermitsOptions
  readonly #semaphore = randomBytes(9).toString('base64url')
  readonly #keyspace: string
  #unsubscribe: (() => void) | undefined

  constructor(options: RedisPermitsOptions) {
    this.#options = options
    this.#keyspace = keyspaceOf(options.prefix, options.name, ['semaphore'])
  }

  async ask(
    step: PermitStep,
    key: string,
    tickets: readonly number[],
    limit: number,
  ): Promise<readonly TicketState[]> {
    const { leaseMs, runner, clock } = this.#options
    const times = [leaseMs * 1000, CLAIM_US, ALIVE_US, GRACE_US, clock()]
    const words = [
      `${this.#keyspace}:to:`,
      this.#semaphore,
      ...tickets.map((ticket) => `${this.#semaphore}:${ticket}`),
    ]
    const numbers = [PERMIT_STEPS.indexOf(step), limit, ...times]
    const argument = packed(numbers, Buffer.from(words.join('\n')))
    const reply = await runner.run(modules['semaphore']!, redisKey(this.#keyspace, key), argument)
    return Array.from(reply, (digit) => TICKET_STATES[digit - ZERO]!)
  }

  listen(granted: (ticket: number) => void): void {
    this.#unsubscribe ??= this.#options.subscribe?.(`${this.#keyspace}:to:${this.#semaphore}`, (message) =>
      granted(Number(message.slice(this.#semaphore.length + 1))),
    )
  }

  close(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#options.onClose()
  }
}

const ZERO = '0'.charCodeAt(0)
