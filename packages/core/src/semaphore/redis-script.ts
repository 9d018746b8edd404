import { modules } from '../stores/redis/modules.gen.js'
import { keyspaceOf, redisKey } from '../stores/redis/redis-key.js'
import type { ScriptRunner } from '../stores/redis/script-runner.js'

export interface SemaphoreScriptOptions {
  readonly prefix: string
  readonly name: string
  readonly leaseMs: number
  readonly runner: ScriptRunner
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
}

/** Operations and states as lua/semaphore.lua numbers them. */
export const [TAKE, LOOK, RENEW, LEAVE] = [1, 2, 3, 4] as const
export const [UNKNOWN, INSIDE] = ['0', '2'] as const

/** Calls lua/semaphore.lua for one process, which hears on `channel` what its tickets got. */
export class SemaphoreScript {
  readonly channel: string
  readonly #options: SemaphoreScriptOptions
  readonly #process: string
  readonly #keyspace: string

  constructor(options: SemaphoreScriptOptions, process: string) {
    this.#options = options
    this.#process = process
    this.#keyspace = keyspaceOf(options.prefix, options.name, ['semaphore'])
    this.channel = `${this.#keyspace}:to:${process}`
  }

  /** A digit for each ticket. `wait`: whoever does not get a place stands in line. */
  async run(
    operation: number,
    { key, limit }: { readonly key: string; readonly limit: number },
    tickets: readonly number[],
    wait = false,
  ): Promise<string> {
    const { leaseMs, runner, clock } = this.#options
    const lease = leaseMs * 1000
    const numbers = [operation, limit, lease, Math.min(lease, CLAIM_US), ALIVE_US, clock(), wait ? 1 : 0]
    const process = this.#process
    const words = [`${this.#keyspace}:to:`, process, ...tickets.map((ticket) => `${process}:${ticket}`)]
    const argument = Buffer.concat([packed(numbers), Buffer.from(words.join('\n'))])
    return (await runner.run(modules['semaphore']!, redisKey(this.#keyspace, key), argument)).toString()
  }
}

/** How long a process is believed to be alive that does not look, in microseconds. */
const ALIVE_US = 1_000_000
/** How long a ticket keeps a place that its process was told of and has not entered. */
const CLAIM_US = 2_000_000

function packed(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * 8)
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, i * 8)
  return bytes
}
