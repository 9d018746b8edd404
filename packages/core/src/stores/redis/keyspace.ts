import { expected, InputError } from '../../errors.js'
import type { Policy } from '../../policy.js'
import type { Answer, Booking, Caller, Keyspace } from '../store.js'
import type { GroupCommit } from './group-commit.js'
import { type CallContext, KeyspaceCall, type Read } from './keyspace-call.js'
import { redisKey } from './redis-key.js'
import type { Tiers } from './tiers.js'
import {
  type RedisBooking,
  type Request,
  unpackAnswer,
  unpackCancellation,
  unpackConfirmation,
} from './wire.js'

/** A log takes a slot for each unit, and a script holds up everybody else while it fills them. */
const LARGEST_LOG_COST = 1000

export interface RedisKeyspaceOptions extends CallContext {
  readonly policies: readonly Policy[]
  /** What the keys of all callers begin with. */
  readonly keyspace: string
  /** Takes calls of the script for these shapes. */
  readonly group: GroupCommit
  readonly tiers: Tiers
}

/** One limiter's state under one list of shapes in Redis. Every operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly #options: RedisKeyspaceOptions
  readonly #hasLog: boolean
  /** What the slowest limits were for the list of the call before: mostly the same list comes again. */
  #slowest:
    { policies: readonly Policy[]; changes: number; limits: readonly number[] | undefined } | undefined

  constructor(options: RedisKeyspaceOptions) {
    this.#options = options
    options.tiers.meet(options.keyspace, options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  consume(policies: readonly Policy[], key: string, cost: number, caller?: Caller): Promise<Answer> {
    return this.#decide({ operation: 'consume', policies, cost }, key, caller)
  }

  peek(policies: readonly Policy[], key: string, cost: number, caller?: Caller): Promise<Answer> {
    return this.#decide({ operation: 'peek', policies, cost }, key, caller)
  }

  book(
    policies: readonly Policy[],
    key: string,
    cost: number,
    maxWait: number,
    caller?: Caller,
  ): Promise<Answer> {
    return this.#decide({ operation: 'book', policies, cost, span: maxWait }, key, caller)
  }

  confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    const { key, policies, token } = booking as RedisBooking
    return this.#ask(
      { operation: 'confirm', policies, token: token.subarray(0, 16) },
      key,
      unpackConfirmation,
    )
  }

  cancel(booking: Booking): Promise<boolean> {
    const { key, policies, token } = booking as RedisBooking
    return this.#ask({ operation: 'cancel', policies, token }, key, unpackCancellation)
  }

  refund(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    return this.#ask({ operation: 'refund', policies, cost }, key, nothing)
  }

  charge(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    return this.#ask({ operation: 'charge', policies, cost }, key, nothing)
  }

  block(key: string, duration: number): Promise<void> {
    const { policies } = this.#options
    return this.#ask({ operation: 'block', policies, span: duration }, key, nothing)
  }

  hold(key: string, duration: number): Promise<void> {
    const { policies } = this.#options
    return this.#ask({ operation: 'hold', policies, span: duration }, key, nothing)
  }

  reset(key: string): Promise<void> {
    return this.#ask({ operation: 'reset', policies: this.#options.policies }, key, nothing)
  }

  #decide(request: Request & { readonly cost: number }, key: string, caller?: Caller): Promise<Answer> {
    if (this.#hasLog && request.operation !== 'peek' && request.cost > LARGEST_LOG_COST) {
      const bound = `cost of a call on a sliding log in Redis must be at most ${LARGEST_LOG_COST}`
      return Promise.reject(expected(InputError, 'INVALID_COST', bound, request.cost))
    }
    return this.#ask(request, key, unpackAnswer, caller)
  }

  #ask<T>(asked: Request, key: string, read: Read<T>, caller?: Caller): Promise<T> {
    const options = this.#options
    const slowest = asked.token ? undefined : this.#slowestFor(asked.policies)
    const request = slowest ? { ...asked, slowest } : asked
    const units = this.#hasLog ? (asked.cost ?? 1) : 1
    const redis = redisKey(options.keyspace, key)
    return new Promise((resolve, reject) => {
      options.group.add(new KeyspaceCall(redis, key, units, request, read, caller, options, resolve, reject))
    })
  }

  #slowestFor(policies: readonly Policy[]): readonly number[] | undefined {
    const { keyspace, tiers } = this.#options
    const known = this.#slowest
    if (known?.policies === policies && known.changes === tiers.changes) return known.limits
    const limits = tiers.below(keyspace, policies)
    this.#slowest = { policies, changes: tiers.changes, limits }
    return limits
  }
}

function nothing(): void {}
