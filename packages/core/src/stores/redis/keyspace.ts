import { expected, InputError } from '../../errors.js'
import type { Policy } from '../../policy.js'
import type { Answer, Booking, Keyspace, Report } from '../store.js'
import { redisKey } from './redis-key.js'
import type { ScriptRunner } from './script-runner.js'
import type { Tiers } from './tiers.js'
import {
  hasHealed,
  packRequest,
  type RedisBooking,
  type Request,
  unpackAnswer,
  unpackCancellation,
  unpackConfirmation,
} from './wire.js'

/** A log takes a slot for each unit, and a script holds up everybody else while it fills them. */
const LARGEST_LOG_COST = 1000

export interface RedisKeyspaceOptions {
  readonly policies: readonly Policy[]
  /** What the keys of all callers begin with. */
  readonly keyspace: string
  readonly script: string
  readonly runner: ScriptRunner
  readonly tiers: Tiers
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
}

/** One limiter's state under one list of shapes in Redis. Every operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly #options: RedisKeyspaceOptions
  readonly #hasLog: boolean

  constructor(options: RedisKeyspaceOptions) {
    this.#options = options
    options.tiers.meet(options.keyspace, options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  consume(policies: readonly Policy[], key: string, cost: number): Promise<Answer> {
    return this.#ask({ operation: 'consume', policies, cost }, key)
  }

  peek(policies: readonly Policy[], key: string, cost: number): Promise<Answer> {
    return this.#ask({ operation: 'peek', policies, cost }, key)
  }

  book(policies: readonly Policy[], key: string, cost: number, maxWait: number): Promise<Answer> {
    return this.#ask({ operation: 'book', policies, cost, span: maxWait }, key)
  }

  async confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    const { key, policies, token } = booking as RedisBooking
    return unpackConfirmation(
      await this.#run({ operation: 'confirm', policies, token: token.subarray(0, 16) }, key),
    )
  }

  async cancel(booking: Booking): Promise<boolean> {
    const { key, policies, token } = booking as RedisBooking
    return unpackCancellation(await this.#run({ operation: 'cancel', policies, token }, key))
  }

  async refund(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    await this.#run({ operation: 'refund', policies, cost }, key)
  }

  async charge(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    await this.#run({ operation: 'charge', policies, cost }, key)
  }

  async block(key: string, duration: number): Promise<void> {
    await this.#run({ operation: 'block', policies: this.#options.policies, span: duration }, key)
  }

  async hold(key: string, duration: number): Promise<void> {
    await this.#run({ operation: 'hold', policies: this.#options.policies, span: duration }, key)
  }

  async reset(key: string): Promise<void> {
    await this.#run({ operation: 'reset', policies: this.#options.policies }, key)
  }

  async #ask(request: Request & { readonly cost: number }, key: string): Promise<Answer> {
    if (this.#hasLog && request.operation !== 'peek' && request.cost > LARGEST_LOG_COST) {
      const bound = `cost of a call on a sliding log in Redis must be at most ${LARGEST_LOG_COST}`
      throw expected(InputError, 'INVALID_COST', bound, request.cost)
    }
    return unpackAnswer(await this.#run(request, key), request.policies, key)
  }

  async #run(request: Request, key: string): Promise<Buffer> {
    const { runner, script, keyspace, tiers, clock, report } = this.#options
    const slowest = request.token ? undefined : tiers.below(keyspace, request.policies)
    const argument = packRequest({ ...request, slowest }, clock(), nonce())
    const reply = await runner.run(script, redisKey(keyspace, key), argument)
    if (hasHealed(reply)) report({ event: 'healed', key })
    return reply
  }
}

const NONCES = 2 ** 48

/** Tells a write, and state that was begun anew, from what was there before. */
function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}
