import { expected, InputError, StoreError } from '../../values/errors.js'
import type { Policy } from '../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Caller, Correction, Keyspace, Receiver } from '../store.js'
import type { GroupCommit } from './group-commit.js'
import { type CallContext, KeyspaceCall, type ReplyReader } from './script-call.js'
import type { SmallestLimits } from './smallest-limits.js'
import {
  packCharge,
  type RedisBooking,
  type ScriptRequest,
  unpackAnswer,
  unpackCancellation,
  unpackConfirmation,
  unpackEffect,
} from './script/wire.js'

export interface RedisKeyspaceOptions extends CallContext {
  readonly policies: readonly Policy[]
  readonly penalty?: Penalty | undefined
  /** Returns what sends the calls of the script for these shapes and this penalty. */
  readonly group: () => GroupCommit
  readonly smallestLimits: SmallestLimits
}

/** The state of one limiter under one list of shapes in Redis. Each operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #options: RedisKeyspaceOptions
  readonly #hasLog: boolean
  /** The smallest limits, as of a count of changes. */
  #slowest: { readonly changes: number; readonly limits: readonly number[] | undefined } | undefined

  /** The latest one: most calls of a keyspace have the same cost. */
  #consumption: ScriptRequest | undefined

  constructor(options: RedisKeyspaceOptions) {
    this.#options = options
    this.policies = options.policies
    this.penalty = options.penalty
    options.smallestLimits.observe(options.keyspace, options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    if (ask !== 'peek' && this.#isTooCostly(cost)) return Promise.reject(tooCostly(cost))
    return this.#ask(
      { operation: ask, policies: this.policies, cost, span: maxWait },
      key,
      unpackAnswer,
      caller,
    )
  }

  consume(key: string, cost: number, receiver: Receiver<Answer>, caller?: Caller): undefined {
    if (this.#isTooCostly(cost)) throw tooCostly(cost)
    const slowest = this.#slowestLimits()
    let request = this.#consumption
    if (!request || request.cost !== cost || request.slowest !== slowest) {
      request = { operation: 'consume', policies: this.policies, cost, slowest }
      this.#consumption = request
    }
    this.#send(request, key, unpackAnswer, receiver, caller)
  }

  confirm({ key, token }: RedisBooking): Promise<'stands' | 'lost' | 'held'> {
    const { policies } = this
    return this.#ask(
      { operation: 'confirm', policies, token: token.subarray(0, 16) },
      key,
      unpackConfirmation,
    )
  }

  async cancel(booking: RedisBooking): Promise<boolean> {
    if (booking.isCancelled) return false
    booking.isCancelled = true
    const { key, at, cost, token } = booking
    const request = { operation: 'cancel', policies: this.policies, cost, span: at, token } as const
    return this.#ask(request, key, unpackCancellation)
  }

  async correct(change: Correction): Promise<number> {
    const { policies } = this
    const { kind: operation, key } = change
    switch (change.kind) {
      case 'charge':
        return this.#charge(key, change.cost)
      case 'refund':
        return this.#ask({ operation, policies, cost: change.cost }, key, unpackEffect)
      case 'release': {
        const token = packCharge(change.charge)
        return this.#ask({ operation, policies, cost: change.units, token }, key, unpackEffect)
      }
      case 'block':
      case 'hold':
        return this.#ask({ operation, policies, span: change.duration }, key, unpackEffect)
      case 'reset':
        return this.#ask({ operation, policies }, key, unpackEffect)
    }
  }

  /** A charge on a log takes several calls, each as short as a decision. */
  async #charge(key: string, cost: number): Promise<number> {
    const { policies } = this
    const most = this.#hasLog ? MOST_ENTRIES : cost
    let effect = 0
    for (let left = cost; left > 0; left -= most) {
      const request = { operation: 'charge', policies, cost: Math.min(left, most) } as const
      try {
        effect += await this.#ask(request, key, unpackEffect)
      } catch (error) {
        if (left < cost && error instanceof StoreError) throw partly(error)
        throw error
      }
    }
    return effect
  }

  #ask<T>(asked: ScriptRequest, key: string, read: ReplyReader<T>, caller?: Caller): Promise<T> {
    const slowest = asked.token ? undefined : this.#slowestLimits()
    const request = slowest ? { ...asked, slowest } : asked
    return new Promise((answered, failed) => {
      this.#send(request, key, read, { answered, failed }, caller)
    })
  }

  #send<T>(
    request: ScriptRequest,
    key: string,
    read: ReplyReader<T>,
    receiver: Receiver<T>,
    caller: Caller | undefined,
  ): void {
    const options = this.#options
    const units = this.#hasLog ? (request.cost ?? 1) : 1
    options.group().add(new KeyspaceCall(options, key, units, request, read, receiver, caller))
  }

  #isTooCostly(cost: number): boolean {
    return this.#hasLog && cost > MOST_ENTRIES
  }

  #slowestLimits(): readonly number[] | undefined {
    const { keyspace, smallestLimits, policies } = this.#options
    const { changes } = smallestLimits
    if (this.#slowest?.changes !== changes) {
      this.#slowest = { changes, limits: smallestLimits.below(keyspace, policies) }
    }
    return this.#slowest.limits
  }
}

function tooCostly(cost: number): Error {
  const bound = `cost of a call on a sliding log in Redis must be at most ${MOST_ENTRIES}`
  return expected(InputError, 'INVALID_COST', bound, cost)
}

/** The failure of a charge that was carried out in part. */
function partly(cause: StoreError): StoreError {
  return new StoreError(cause.code, cause.message, { cause, sent: true })
}
