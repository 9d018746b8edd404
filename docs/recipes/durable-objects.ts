import type { Policy } from '@sluice/core'
import { type Answer, type Booking, guard, type Keyspace, keyspaceOver } from '@sluice/core/store'
import { type Penalty, type Store, StoreError, type Update } from '@sluice/core/store'

/*
 * A Durable Object for each key, of which there is one in the world. It decides by itself: a decision is one request to it.
 */

/** What the objects and their bindings have, of the types of Cloudflare. */
export interface Storage {
  get(key: 'state'): Promise<Kept | undefined>
  put(key: 'state', value: Kept): Promise<void>
  setAlarm(ms: number): Promise<void>
  deleteAll(): Promise<void>
}
export interface Context {
  readonly storage: Storage
}
export interface Objects {
  idFromName(name: string): unknown
  get(id: never): { fetch(url: string, init?: RequestInit): Promise<Response> }
}
type Kept = ReadonlyMap<string, Uint8Array>

/** The policies of each limiter, by its name: the Worker and its objects are made of one script, so both have them. */
export type Limits = Readonly<Record<string, readonly Policy[]>>

/** One operation of a keyspace, with the numbers of its policies: tiers have others than the list of the limiter. */
interface Asked {
  readonly name: string
  readonly numbers: readonly { readonly limit: number; readonly capacity: number }[]
  readonly penalty: Penalty | undefined
  readonly operation: 'decide' | 'confirm' | 'cancel' | 'correct'
  readonly with: readonly unknown[]
}

/** An object of one key: `export class LimitState extends LimitObject { constructor(ctx: Context) { super(ctx, limits) } }` */
export class LimitObject {
  #states: Map<string, Uint8Array> | undefined
  #expires = 0
  readonly #keyspaces = new Map<string, Keyspace>()

  constructor(
    readonly ctx: Context,
    readonly limits: Limits,
  ) {}

  async fetch(request: Request): Promise<Response> {
    const asked = parse(await request.text()) as Asked
    const stored = this.#states ? undefined : await this.ctx.storage.get('state')
    this.#states ??= new Map(stored)
    // From here on nothing is waited for: the decision is one step.
    const keyspace = this.#keyspaceOf(asked)
    if (!keyspace) return new Response(`the objects know no limiter ${asked.name}`, { status: 404 })
    const operate = keyspace[asked.operation].bind(keyspace) as (...given: readonly unknown[]) => unknown
    return new Response(stringify(operate(...asked.with)))
  }

  #keyspaceOf({ name, numbers, penalty }: Asked): Keyspace | undefined {
    const id = stringify([name, numbers, penalty])
    const known = this.#keyspaces.get(id)
    const policies = this.limits[name]?.map((policy, i) => policy.with(numbers[i]!))
    if (known || !policies) return known
    const opened = keyspaceOver(this.#update, name, policies, () => {}, penalty)
    this.#keyspaces.set(id, opened)
    return opened
  }

  /** The answer leaves the object when the state is stored: the platform holds it back until then. */
  readonly #update: Update = (id, change) => {
    const states = this.#states!
    const before = states.get(id)
    const { result, state, expiresAt } = change(before, Date.now() * 1000)
    if (state === before) return result
    if (state) states.set(id, state)
    else states.delete(id)
    if (states.size === 0) void this.ctx.storage.deleteAll()
    else {
      this.#expires = Math.max(this.#expires, Math.ceil(expiresAt / 1000))
      void this.ctx.storage.put('state', states)
      void this.ctx.storage.setAlarm(this.#expires)
    }
    return result
  }

  /** The state matters no more. */
  alarm(): Promise<void> {
    this.#states = undefined
    return this.ctx.storage.deleteAll()
  }
}

/** A store whose states lie in Durable Objects. */
export function objectStore(objects: Objects): Store {
  return {
    guard,
    // A denied caller is denied again without asking, for up to a second.
    denialCache: { maxAge: 1_000_000, maxKeys: 10_000 },
    keyspace: (name, policies, _report, penalty) => keyspaceIn(objects, name, policies, penalty),
    now: () => Math.floor(performance.now() * 1000),
    close() {},
  }
}

function keyspaceIn(
  objects: Objects,
  name: string,
  policies: readonly Policy[],
  penalty?: Penalty,
): Keyspace {
  const numbers = policies.map(({ limit, capacity }) => ({ limit, capacity }))
  const cancelled = new WeakSet<Booking>()
  const ask = async <T>(key: string, operation: Asked['operation'], ...given: unknown[]): Promise<T> => {
    const object = objects.get(objects.idFromName(JSON.stringify([name, key])) as never)
    const body = stringify({ name, numbers, penalty, operation, with: given } satisfies Asked)
    try {
      const reply = await object.fetch('https://limit/', { method: 'POST', body })
      if (reply.ok) return parse(await reply.text()) as T
      throw new Error(`${reply.status}: ${await reply.text()}`)
    } catch (cause) {
      throw new StoreError('STORE_UNAVAILABLE', 'the Durable Object did not decide', { cause })
    }
  }
  return {
    policies,
    penalty,
    decide: (asked, key, cost, maxWait) => ask<Answer>(key, 'decide', asked, key, cost, maxWait),
    confirm: (booking) => ask(booking.key, 'confirm', booking),
    cancel: async (booking) => {
      if (cancelled.has(booking)) return false
      cancelled.add(booking)
      return ask(booking.key, 'cancel', booking)
    },
    correct: (change) => ask(change.key, 'correct', change),
  }
}

/** JSON that has Infinity, and numbers of a state as an array. */
function stringify(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (each === Infinity) return { never: true }
    return each instanceof Float64Array ? [...each] : each
  })
}

function parse(text: string): unknown {
  const isNever = (each: unknown) => typeof each === 'object' && each !== null && 'never' in each
  return JSON.parse(text, (_, each: unknown) => (isNever(each) ? Infinity : each))
}
