import { randomFrom } from '@sluice/harness/figures'
import type { Limiter, Policy, Semaphore, Settlement } from '@sluice/core'
import type { RedisStore } from '@sluice/core/redis'
import { Link } from './link.js'
import { type Call, type Plan, type PolicySpec, scaled } from './plan.js'
import { Process, type Program } from './process.js'
import { clientOf, EVENLY, type Provider } from './provider.js'
import type { Execution, Server } from './server.js'
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

/** Most reservations of a key that are open at once. */
export const MOST_OPEN = 3

/** A reservation that was made, and what was done with it. */
export interface Reserved {
  readonly call: Call
  /** When its holder heard of it, on the world's clock. */
  readonly at: number
  readonly execution: Execution | undefined
  /** Its first end on the server's clock, in microseconds. */
  readonly end: number
  readonly deeds: Deed[]
}

/** A settling, or where it has no units an extension. */
export interface Deed {
  /** When it was begun, on the world's clock. */
  readonly at: number
  readonly units: number | undefined
  told: Settlement | undefined
  execution: Execution | undefined
  error: { readonly sent?: boolean } | undefined
}

/** The limit of the ledger, which no key reaches without an override. */
export const LEDGER = 1_000_000

/** An override or a block that a process made or removed. Instants are the world's, in microseconds. */
export interface Rule {
  readonly kind: 'override' | 'block'
  readonly key: string
  readonly member: Member
  /** The limit, Infinity for an exemption, undefined where it was removed; of a block anything but undefined. */
  readonly limit: number | undefined
  readonly lasts: number
  readonly from: number
  /** When its maker was told that it is done; Infinity where he was not. */
  until: number
}

/** The units of the ledger at which an event tells that a share is near. */
export const NEARING = [2, 5, 10, 15]

/** A share of the ledger that a process was told to have crossed, in units, and when. */
export interface CrossedShare {
  readonly key: string
  readonly units: number
  readonly at: number
}

/** The list of policies that some calls bring: no plan has its window. */
export const TIER = { limit: 5, window: '700ms' } as const

/** Microseconds a day. */
const DAY_US = 86_400_000_000

/** What a process of the fleet is started in. */
export interface Surroundings {
  readonly world: World
  readonly server: Server
  readonly provider: Provider
  readonly program: Program
  readonly plan: Plan
}

/** One process of the fleet, with its connection, its store and its limiters. */
export class Member {
  readonly process: Process
  readonly link: Link
  readonly store: RedisStore
  /** Under the plan's policies and failure mode. */
  readonly limiter: Limiter
  /** Counts for a year, so that what the server has counted can be compared with what was admitted. */
  readonly ledger: Limiter
  readonly rules: Rule[] = []
  /** Reserves, and is otherwise as the ledger. */
  readonly budget: Limiter
  readonly reserved: Reserved[] = []
  /** Gives calls to the provider their turns. */
  readonly turns: Limiter
  readonly client: ReturnType<typeof clientOf>
  readonly semaphore: Semaphore
  /** The limit of its semaphore. */
  readonly permits: number
  readonly policies: readonly Policy[]
  /** Another list of its limiter; undefined where leases lengthen windows. */
  readonly tier: readonly Policy[] | undefined
  /** One call in 100 ms, counted in this process. */
  readonly own: Limiter
  /** Permits that calls of this process hold or have held, in the order of the grants. */
  readonly holds: Hold[] = []
  readonly crossings: CrossedShare[] = []
  /** What failed of what calls do later: settling, and releasing permits. */
  readonly failures: { readonly call: Call; readonly error: string }[] = []
  /** The stretches of time in which it stood still, as pairs of instants. */
  readonly stills: (readonly [from: number, to: number])[] = []
  /** By how much slower each way is, in microseconds. */
  slowness = 0
  /** Whether the network is as fast as it can be. */
  isCalm = false

  readonly world: World

  constructor(
    { world, server, provider, program, plan }: Surroundings,
    readonly name: string,
    seed: number,
    readonly factor: number,
  ) {
    this.world = world
    const random = randomFrom(seed)
    const skew = Math.round((random() - 0.5) * 2 * DAY_US)
    this.process = new Process(world, name, program, seed ^ 0x5bd1e995, skew)
    const [least, mean] = plan.delay
    const delay = (): number => least + this.slowness - Math.log(1 - random()) * (this.isCalm ? 50 : mean)
    this.link = new Link(this.process, server, { isWatched: plan.isWatched, connects: plan.connects, delay })
    const { createLimiter, redisStore, fixedWindow, gcra, CONNECTION } = this.process.core
    this.store = redisStore({ [CONNECTION]: this.link })
    this.policies = plan.policies.map((spec) => policyOf(this.process, spec, factor))
    const { onStoreError, deadline } = plan
    const all = { store: this.store, deadline }
    this.tier = plan.extras.leases ? undefined : [fixedWindow(TIER)]
    this.limiter = createLimiter({
      name: 'api',
      policies: this.policies,
      onStoreError,
      ...(this.tier && { tiers: [this.tier] }),
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
    this.own = createLimiter({ name: 'own', policies: [fixedWindow({ limit: 1, window: '100ms' })] })
    const year = [fixedWindow({ limit: LEDGER, window: '365d' })]
    this.ledger = createLimiter({
      name: 'ledger',
      policies: year,
      nearing: NEARING.map((units) => units / LEDGER),
      ...all,
    })
    this.ledger.on('nearing', ({ key, share, decidedBy }) => {
      if (decidedBy === 'store')
        this.crossings.push({ key, units: Math.round(share * LEDGER), at: world.now })
    })
    const reservations = { max: MOST_OPEN }
    this.turns = createLimiter({ name: 'turns', policies: [gcra(EVENLY)], onStoreError: 'throw', ...all })
    this.client = clientOf(this.process, this.turns, provider.fetchOf(this.process))
    this.budget = createLimiter({
      name: 'budget',
      policies: year,
      onStoreError: 'throw',
      reservations,
      ...all,
    })
  }

  /** Notes that what a call does later has failed. */
  failed(call: Call, error: unknown): void {
    this.failures.push({ call, error: nameOf(error) })
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
    const { client, turns, limiter, ledger, budget, own, semaphore } = this
    const all = [client.queue, turns, limiter, ledger, budget, own, semaphore]
    await Promise.all(all.map((each) => each.close()))
    await this.store.close()
  }
}

/** An error by its code, or where it has none as a text. */
export function nameOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error)
}

/** A policy in a process whose limits are larger by a factor. */
export function policyOf({ core }: Process, { shape, options }: PolicySpec, factor: number): Policy {
  const numbers = scaled(options, factor)
  const make = core[shape.algorithm as 'gcra'] as (options: object) => Policy
  const { window, ...rest } = numbers
  return make(shape.model.onlyWindow ? rest : { ...rest, window: `${window}ms` })
}
