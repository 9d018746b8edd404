import { randomFrom } from '@sluice/harness/figures'
import type { Limiter, Policy, Semaphore } from '@sluice/core'
import type { RedisStore } from '@sluice/core/redis'
import { Link } from './link.js'
import { type Plan, type PolicySpec, scaled } from './plan.js'
import { Process, type Program } from './process.js'
import type { Server } from './server.js'
import type { World } from './world.js'

/** Most permits of a key by the semaphore of any process, and their lease. */
export const PERMITS = 4
export const LEASE_MS = 2000

/** A permit that a call holds, from its grant until its release begins, it is known to be lost, or its process dies. */
export interface Hold {
  readonly key: string
  readonly id: number
  /** The limit of its semaphore. */
  readonly limit: number
  readonly from: number
  until: number
}

/** Microseconds a day. */
const DAY_US = 86_400_000_000

/** One process of the fleet, with its connection, its store and its limiters. */
export class Member {
  readonly process: Process
  readonly link: Link
  readonly store: RedisStore
  /** Under the plan's policies and failure mode. */
  readonly limiter: Limiter
  /** Counts for a year and throws in an outage, so that what the server has counted can be compared with what was admitted. */
  readonly ledger: Limiter
  readonly semaphore: Semaphore
  /** The limit of its semaphore. */
  readonly permits: number
  readonly policies: readonly Policy[]
  /** One call in 100 ms, counted in this process. */
  readonly own: Limiter
  /** Permits that calls of this process hold or have held, in the order of the grants. */
  readonly holds: Hold[] = []
  /** The stretches of time in which it stood still, as pairs of instants. */
  readonly stills: (readonly [from: number, to: number])[] = []
  /** By how much slower each way is, in microseconds. */
  slowness = 0
  /** Whether the network is as fast as it can be. */
  isCalm = false

  constructor(
    readonly world: World,
    server: Server,
    program: Program,
    plan: Plan,
    readonly name: string,
    seed: number,
    factor: number,
  ) {
    const random = randomFrom(seed)
    const skew = Math.round((random() - 0.5) * 2 * DAY_US)
    this.process = new Process(world, name, program, seed ^ 0x5bd1e995, skew)
    const [least, mean] = plan.delay
    const delay = (): number => least + this.slowness - Math.log(1 - random()) * (this.isCalm ? 50 : mean)
    this.link = new Link(this.process, server, { isWatched: plan.isWatched, connects: plan.connects, delay })
    const { createLimiter, redisStore, fixedWindow, CONNECTION } = this.process.core
    this.store = redisStore({ [CONNECTION]: this.link })
    this.policies = plan.policies.map((spec) => policyOf(this.process, spec, factor))
    const { onStoreError, deadline } = plan
    const all = { store: this.store, deadline }
    this.limiter = createLimiter({
      name: 'api',
      policies: this.policies,
      onStoreError,
      ...plan.extras,
      ...all,
    })
    const onLost = (key: string): void => {
      const held = this.holds.find((hold) => hold.key === key && hold.until === Infinity)
      if (held) held.until = this.world.now
    }
    this.permits = 2 + (seed % (PERMITS - 1))
    const permits = { name: 'permits', limit: this.permits, lease: LEASE_MS, store: this.store, onLost }
    this.semaphore = this.process.core.createSemaphore(permits)
    const year = [fixedWindow({ limit: 1_000_000, window: '365d' })]
    this.own = createLimiter({ name: 'own', policies: [fixedWindow({ limit: 1, window: '100ms' })] })
    this.ledger = createLimiter({ name: 'ledger', policies: year, onStoreError: 'throw', ...all })
  }

  stand(lasts: number, isStopped: boolean): void {
    this.process.stand(lasts, isStopped)
    this.stills.push([this.world.now, this.world.now + lasts])
  }

  /** Ends it: nothing of it happens any more. Its connection breaks, and what is on its way to the server arrives. */
  kill(): void {
    this.process.isDead = true
    for (const hold of this.holds) hold.until = Math.min(hold.until, this.world.now)
    this.link.isClosed = true
  }

  async close(): Promise<void> {
    await Promise.all([this.limiter, this.ledger, this.own, this.semaphore].map((each) => each.close()))
    await this.store.close()
  }
}

/** A policy in a process whose limits are larger by a factor. */
export function policyOf({ core }: Process, { shape, options }: PolicySpec, factor: number): Policy {
  const numbers = scaled(options, factor)
  const make = core[shape.algorithm as 'gcra'] as (options: object) => Policy
  return make({ ...numbers, window: `${numbers.window}ms` })
}
