import { expected, InputError } from '../../errors.js'
import type { Policy } from '../../policy.js'
import type { Answer, Ask, Caller, Correction, Keyspace } from '../store.js'
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
  readonly policies: readonly Policy[]
  readonly #options: RedisKeyspaceOptions
  readonly #hasLog: boolean
  /** The slowest limits, as they were when so many had been met. */
  #slowest: { readonly changes: number; readonly limits: readonly number[] | undefined } | undefined

  constructor(options: RedisKeyspaceOptions) {
    this.#options = options
    this.policies = options.policies
    options.tiers.meet(options.keyspace, options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    if (this.#hasLog && ask !== 'peek' && cost > LARGEST_LOG_COST) {
      const bound = `cost of a call on a sliding log in Redis must be at most ${LARGEST_LOG_COST}`
      return Promise.reject(expected(InputError, 'INVALID_COST', bound, cost))
    }
    return this.#ask(
      { operation: ask, policies: this.policies, cost, span: maxWait },
      key,
      unpackAnswer,
      caller,
    )
  }

  confirm({ key, token }: RedisBooking): Promise<'stands' | 'lost' | 'held'> {
    const policies = this.policies
    return this.#ask(
      { operation: 'confirm', policies, token: token.subarray(0, 16) },
      key,
      unpackConfirmation,
    )
  }

  cancel({ key, token }: RedisBooking): Promise<boolean> {
    return this.#ask({ operation: 'cancel', policies: this.policies, token }, key, unpackCancellation)
  }

  async correct(change: Correction): Promise<number> {
    const { policies } = this
    const { kind: operation, key } = change
    if ('duration' in change) {
      return this.#ask({ operation, policies, span: change.duration }, key, nothing)
    }
    const cost = 'cost' in change ? change.cost : 0
    await this.#ask({ operation, policies, cost }, key, nothing)
    return cost
  }

  #ask<T>(asked: Request, key: string, read: Read<T>, caller?: Caller): Promise<T> {
    const options = this.#options
    const slowest = asked.token ? undefined : this.#slowestLimits()
    const request = slowest ? { ...asked, slowest } : asked
    const units = this.#hasLog ? (asked.cost ?? 1) : 1
    const redis = redisKey(options.keyspace, key)
    return new Promise((resolve, reject) => {
      options.group.add(new KeyspaceCall(redis, key, units, request, read, caller, options, resolve, reject))
    })
  }

  #slowestLimits(): readonly number[] | undefined {
    const { keyspace, tiers, policies } = this.#options
    const { changes } = tiers
    if (this.#slowest?.changes !== changes) {
      this.#slowest = { changes, limits: tiers.below(keyspace, policies) }
    }
    return this.#slowest.limits
  }
}

function nothing(): number {
  return 0
}
