import type { Policy } from '@sluice/core'
import { Closing, CONTRACT, CONTRACT_NUMBER, guard, storeClosed, systemClock } from '@sluice/core/internal'
import type { DenialCacheBounds, Keyspace, Penalty, Permits, Records, Report } from '@sluice/core/store'
import type { ReservationSettings, Store } from '@sluice/core/store'
import { MachineKeyspace, MachinePermits, MachineTogether, Reports } from './machine-keyspace.js'
import { machineRecords } from './machine-records.js'
import { ServerAccess } from './server-access.js'
import { type MachineStoreOptions, machineSettings } from './settings.js'
import { WirePolicies } from './wire-policies.js'

export type { DenialCacheOptions } from '@sluice/core/internal'
export type { MachineStoreOptions } from './settings.js'

/** Made by `machineStore`. */
export interface MachineStore extends Store {
  /**
   * Resolves once this process serves, or reaches the process that does.
   * @throws {StoreError} STORE_UNAVAILABLE if it can do neither now, or CLOSED.
   */
  ready(): Promise<void>
}

/**
 * A store for the processes and worker threads of one machine and one user, without a server of its own: services, forks,
 * node:cluster and PM2. The first of them keeps the state in a memory store and serves the others over a Unix socket that
 * only their user can open (on Windows: a named pipe). When it ends, another one takes over and the state begins anew: each
 * key has its full allowance once more.
 *
 * The store keeps no process alive, not even the one that serves.
 * @throws {PolicyError} NAME_REQUIRED, INVALID_NAME, or INVALID_OPTION for a bad option or a folder that others
 * own or could replace.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * import { machineStore } from '@sluice/machine'
 * const store = machineStore({ name: 'shop' })
 * const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1m' })], store })
 */
export function machineStore(options: MachineStoreOptions): MachineStore {
  return new StoreOfMachine(options)
}

class StoreOfMachine implements MachineStore {
  readonly [CONTRACT] = CONTRACT_NUMBER
  readonly guard = guard
  readonly forgets = true
  readonly denialCache?: DenialCacheBounds
  readonly maxShapes: number | undefined
  readonly #access: ServerAccess
  readonly #together: MachineTogether
  readonly #now = systemClock()
  readonly #reports = new Reports()
  readonly #permits = new Map<number, MachinePermits>()
  #semaphores = 0
  readonly #closing = new Closing()

  /**
   * Makes a store whose state one process of this machine keeps, the server. `#access`, which calls the server, begins at once to
   * look for it. What the server reports by itself is passed on: a `notice`, such as of an evicted key, to the limiters of that
   * name, and a permit for a `ticket` (a waiting call, by number) to its semaphore, which the server also knows by a number.
   * `#together` decides calls on several keys there. `maxShapes` is the most lists of policies that the server keeps apart.
   */
  constructor(options: MachineStoreOptions) {
    const { denialCache, ...access } = machineSettings(options)
    if (denialCache) this.denialCache = denialCache
    this.maxShapes = access.host.maxShapes
    this.#access = new ServerAccess(access, {
      notice: (name, notice) => this.#reports.pass(name, notice),
      granted: (semaphore, ticket) => this.#permits.get(semaphore)?.granted(ticket),
    })
    this.#together = new MachineTogether(this.#access)
  }

  /**
   * Settles when the present search for a server ends, also if none was found; undefined if a server is reached already. Calls
   * begin their deadlines only then.
   */
  start(): Promise<unknown> | undefined {
    return this.#access.isReached ? undefined : this.#access.joined
  }

  /**
   * Resolves when the server is reached, and rejects if the search for one that is under way fails. `now` throws if the store is
   * closed.
   */
  async ready(): Promise<void> {
    this.now()
    if (!this.#access.isReached) await this.#access.joined
  }

  /**
   * Returns the way to the state of one limiter under one list of policies, which one process of this machine keeps for all, the
   * server. The server also enforces the penalty and the most reservations of a key. `report` gets the notices that it sends about
   * limiters of this name; it is held weakly, and so goes with its limiter.
   */
  keyspace(
    name: string,
    policies: readonly Policy[],
    report: Report,
    penalty?: Penalty,
    reservations?: ReservationSettings,
  ): Keyspace {
    this.#reports.add(name, report)
    const list = new WirePolicies(name, policies, penalty, reservations?.max)
    return new MachineKeyspace(list, report, this.#together)
  }

  /**
   * The time in whole microseconds, on the clock of this process; decisions are made by that of the server.
   * @throws {StoreError} CLOSED.
   */
  now(): number {
    if (this.#closing.isClosed) throw storeClosed()
    return Math.floor(this.#now())
  }

  /**
   * The permits of one semaphore object, each for `leaseMs` milliseconds without renewal. The server speaks to the object by a
   * number, as several may have one name.
   */
  permits(name: string, leaseMs: number): Permits {
    const number = ++this.#semaphores
    const onClose = (): unknown => this.#permits.delete(number)
    const permits = new MachinePermits({ number, name, leaseMs, access: this.#access, onClose })
    this.#permits.set(number, permits)
    return permits
  }

  /** The records of operators about single keys. They end with the server, as all of its state does. */
  records(): Records {
    return machineRecords(this.#access)
  }

  get closed(): AbortSignal {
    return this.#closing.signal
  }

  /** Leaves the server, or if this process is the server, ends it: another process takes over with empty state. */
  close(): void {
    this.#closing.close()
    this.#access.close()
  }
}
