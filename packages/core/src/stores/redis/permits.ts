import { randomBytes } from 'node:crypto'
import type { Permits, TicketState } from '../store.js'
import type { Subscribe } from './redis-connection.js'
import { modules } from './script/modules.gen.js'
import { keyspaceOf, redisKey } from './redis-key.js'
import type { ScriptRunner } from './script/script-runner.js'

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
 * The permits of one semaphore of this process in Redis. Each operation is one call of lua/semaphore.lua. A granted permit is
 * announced on this process's Pub/Sub channel.
 */
export class RedisPermits implements Permits {
  readonly #options: RedisPermitsOptions
  readonly #process = randomBytes(9).toString('base64url')
  readonly #keyspace: string
  #unsubscribe: (() => void) | undefined

  constructor(options: RedisPermitsOptions) {
    this.#options = options
    this.#keyspace = keyspaceOf(options.prefix, options.name, ['semaphore'])
  }

  async take(key: string, ticket: number, limit: number, waits: boolean): Promise<boolean> {
    const [state] = await this.#run('take', key, [ticket], limit, waits)
    return state === 'held'
  }

  poll(key: string, tickets: readonly number[], limit: number): Promise<readonly TicketState[]> {
    return this.#run('poll', key, tickets, limit, true)
  }

  renew(key: string, tickets: readonly number[], limit: number): Promise<readonly TicketState[]> {
    return this.#run('renew', key, tickets, limit)
  }

  async release(key: string, tickets: readonly number[], limit: number): Promise<void> {
    await this.#run('release', key, tickets, limit)
  }

  listen(granted: (ticket: number) => void): void {
    this.#unsubscribe ??= this.#options.subscribe?.(`${this.#keyspace}:to:${this.#process}`, (message) =>
      granted(Number(message.slice(this.#process.length + 1))),
    )
  }

  close(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#options.onClose()
  }

  /** With `waits`, this process counts as alive, and a ticket of `take` that gets no permit enters the queue. */
  async #run(
    operation: keyof typeof OPERATIONS,
    key: string,
    tickets: readonly number[],
    limit: number,
    waits = false,
  ): Promise<readonly TicketState[]> {
    const { leaseMs, runner, clock } = this.#options
    const lease = leaseMs * 1000
    const claim = Math.min(lease, CLAIM_US)
    const numbers = [OPERATIONS[operation], limit, lease, claim, ALIVE_US, clock(), waits ? 1 : 0]
    const process = this.#process
    const words = [`${this.#keyspace}:to:`, process, ...tickets.map((ticket) => `${process}:${ticket}`)]
    const argument = Buffer.concat([packed(numbers), Buffer.from(words.join('\n'))])
    const reply = await runner.run(modules['semaphore']!, redisKey(this.#keyspace, key), argument)
    return Array.from(reply, (digit) => STATES[digit - ZERO]!)
  }
}

/** The numbers of the operations in lua/semaphore.lua. */
const OPERATIONS = { take: 1, poll: 2, renew: 3, release: 4 } as const
/** The states by their digit in a reply. */
const STATES = ['unknown', 'waiting', 'held'] as const
const ZERO = '0'.charCodeAt(0)

/** How long a process that does not poll still counts as alive, in microseconds. */
const ALIVE_US = 1_000_000
/** How long a granted permit is kept for a ticket that its process has not polled since, in microseconds. */
const CLAIM_US = 2_000_000

function packed(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * 8)
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, i * 8)
  return bytes
}
