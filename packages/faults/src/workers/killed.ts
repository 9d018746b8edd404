import { randomUUID } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { createLimiter, createSemaphore, gcra, type Store } from '@sluice/core'
import { type RedisClient, redisStore } from '@sluice/core/redis'
import type { Address } from '@sluice/harness/redis'
import { pause, until } from '@sluice/harness/redis'
import { machineStore } from '@sluice/machine'
import { fleetTopKeys } from '@sluice/metrics'
import { postgresStore } from '@sluice/postgres'
import { serve } from './fleet-member.js'

/* A process that uses all that makes promises over connections which others kill, for row 47. */

/** Stores to use from now on, all at once; to close the sockets of all that the process serves; or to end. */
export type KilledJob = { readonly stores: readonly Place[] } | 'kill' | 'end'

/** A store over connections of its own ('own'), or over a client that is handed in. */
export type Place =
  | ({ readonly client: 'own' | keyof typeof HANDED_IN } & Address)
  | { readonly client: 'own' | keyof typeof CLUSTERS; readonly cluster: readonly Address[] }
  | { readonly client: 'own' | 'pg' | 'postgres'; readonly postgres: string }
  | { readonly client: 'own'; readonly folder: string; readonly serve: boolean }

export interface KilledResult {
  /** The rejections and errors that would have ended the process, each by its first line. */
  readonly unhandled: readonly string[]
  readonly uncaught: readonly string[]
  /** Permits that were there at last, and those that should be. */
  readonly back: number
  readonly permits: number
  /** The clients whose permits were not all there. */
  readonly away: readonly string[]
  /** Permits that calls took and gave back meanwhile. */
  readonly moved: number
}

interface Opened {
  readonly store: Store
  /** Ends a client that was handed in. */
  end(): unknown
}

// Loaded when they are needed: some processes do not find some of them. No client sends a call again behind its release.
const HANDED_IN = {
  ioredis: async (address: Address) => {
    const { Redis } = await import('ioredis')
    return disconnected(new Redis({ ...address, retryStrategy: soon }))
  },
  iovalkey: async (address: Address) => {
    const { Redis } = await import('iovalkey')
    return disconnected(new Redis({ ...address, retryStrategy: soon, maxRetriesPerRequest: 0 }))
  },
  'node-redis': async (address: Address) => {
    const { createClient } = await import('redis')
    return connecting(createClient({ socket: { ...address, reconnectStrategy: soon } }))
  },
  'node-redis 5': async (address: Address) => {
    const { createClient } = await import('redis5')
    return connecting(createClient({ socket: { ...address, reconnectStrategy: soon } }))
  },
  'pool of node-redis': async (address: Address) => {
    const { createClientPool } = await import('redis')
    const socket = { ...address, reconnectStrategy: soon }
    return connecting(createClientPool({ socket }, { minimum: 1, maximum: 2 }))
  },
}

const CLUSTERS = {
  ioredis: async (nodes: readonly Address[]) => {
    const { Cluster } = await import('ioredis')
    return disconnected(new Cluster([...nodes], { clusterRetryStrategy: soon, retryDelayOnFailover: 0 }))
  },
  iovalkey: async (nodes: readonly Address[]) => {
    const { Cluster } = await import('iovalkey')
    return disconnected(new Cluster([...nodes], { clusterRetryStrategy: soon, retryDelayOnFailover: 0 }))
  },
  'node-redis': async (nodes: readonly Address[]) => {
    const { createCluster } = await import('redis')
    const rootNodes = nodes.map((socket) => ({ socket }))
    return connecting(createCluster({ rootNodes, defaults: { socket: { reconnectStrategy: soon } } }))
  },
}

/** Milliseconds to the next attempt to connect. The clients' own pauses would be most of the row. */
function soon(): number {
  return 10
}

/** Hands in a client of ioredis or iovalkey. */
function disconnected(client: RedisClient & { disconnect(): void }): Opened {
  return { store: redisStore(client), end: () => client.disconnect() }
}

/** Hands in a client of node-redis, which is told to connect. */
function connecting(client: RedisClient & { connect(): Promise<unknown>; destroy(): void }): Opened {
  client.connect().catch(() => {})
  return { store: redisStore(client), end: () => client.destroy() }
}

/** Opens the store of a place. */
async function open(place: Place): Promise<Opened> {
  const nothing = () => {}
  if ('folder' in place) {
    return { store: machineStore({ name: 'killed', folder: place.folder, serve: place.serve }), end: nothing }
  }
  if ('postgres' in place) return openPostgres(place.client, place.postgres)
  if ('cluster' in place) {
    const { client, cluster } = place
    return client === 'own' ? { store: redisStore({ cluster }), end: nothing } : CLUSTERS[client](cluster)
  }
  const { client, host, port } = place
  if (client === 'own') return { store: redisStore(`redis://${host}:${port}`), end: nothing }
  return HANDED_IN[client]({ host, port })
}

/** Opens a store on a Postgres. */
async function openPostgres(client: 'own' | 'pg' | 'postgres', url: string): Promise<Opened> {
  if (client === 'own') return { store: postgresStore(url), end: () => {} }
  if (client === 'pg') {
    const { Pool } = await import('pg')
    const pool = new Pool({ connectionString: url })
    return { store: postgresStore(pool), end: () => pool.end() }
  }
  const { default: postgres } = await import('postgres')
  // With `fetch_types` the client asks for types by itself, and nobody gets that promise (findings/postgres-js-fetch-types.sh).
  const sql = postgres(url, { onnotice: () => {}, backoff: () => 0, fetch_types: false })
  return { store: postgresStore(sql), end: () => sql.end({ timeout: 1 }) }
}

const unhandled: string[] = []
const uncaught: string[] = []
process.on('unhandledRejection', (reason) => unhandled.push(firstLines(reason)))
process.on('uncaughtException', (error) => uncaught.push(firstLines(error)))

/** The message of an error, and the line of code that made it. */
function firstLines(error: unknown): string {
  const lines = String((error as Partial<Error>)?.stack ?? error).split('\n')
  return lines.slice(0, 2).join(' ').replace(/\s+/g, ' ')
}

const served = new Set<Socket>()
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket }
  served.add(socket.once('close', () => served.delete(socket)))
})

let users: readonly StoreUser[] = []

serve<KilledJob, KilledResult | number>(async (job) => {
  if (job === 'kill') return async () => closeServed()
  if (job === 'end') return end
  users = await Promise.all(job.stores.map(async (place) => new StoreUser(place, await open(place))))
  await Promise.all(users.map((user) => user.begin()))
  return async () => users.length
})

/** Closes the sockets of all that this process serves. Returns how many. */
function closeServed(): number {
  const { size } = served
  for (const socket of served) socket.destroy()
  return size
}

/** Ends the use of all stores. Returns what came of it when no socket is left whose end could reject anything. */
async function end(): Promise<KilledResult> {
  const results = await Promise.all(users.map((user) => user.end()))
  const closed = until(
    'the sockets to close',
    () => !process.getActiveResourcesInfo().includes('TCPSocketWrap'),
    5000,
  )
  // A cluster of node-redis that is ended while its nodes connect keeps their sockets.
  await (users.some(({ keepsSockets }) => keepsSockets) ? closed.catch(() => {}) : closed)
  return {
    unhandled,
    uncaught,
    back: results.reduce((sum, { back }) => sum + back, 0),
    permits: users.length * (PERMITS + 1),
    away: results.filter(({ back }) => back <= PERMITS).map(({ client }) => client),
    moved: results.reduce((sum, { moved }) => sum + moved, 0),
  }
}

const PERMITS = 3
/** A permit of a process that is killed would stay away for as long: none comes back by itself while the row runs. */
const LEASE = '1h'
/** How long calls wait for a store that is reached again. */
const PATIENCE = '20s'

/** Uses a store in every way that makes promises: semaphores, waits, boards, leases, and stores that are closed at once. */
class StoreUser {
  readonly #place: Place
  readonly #opened: Opened
  /** Of this user alone: others may use the same server. */
  readonly #key = randomUUID()
  readonly #loops: Promise<void>[] = []
  #isOver = false
  #moved = 0
  #holding: { release(): Promise<void> } | undefined
  #waiting: Promise<{ readonly allowed: boolean; release(): Promise<void> }> | undefined
  readonly #held
  readonly #moving
  readonly #leased
  readonly #booked

  constructor(place: Place, opened: Opened) {
    this.#place = place
    this.#opened = opened
    const { store } = opened
    const kept = { store, lease: LEASE } as const
    this.#held = createSemaphore({ name: 'held', limit: 1, ...kept })
    this.#moving = createSemaphore({ name: 'moving', limit: PERMITS, ...kept })
    const many = [gcra({ limit: 1_000_000, window: '1s' })]
    this.#leased = createLimiter({ name: 'leased', store, policies: many, leases: { ttl: '100ms' } })
    const few = [gcra({ limit: 200, window: '1s', burst: 1 })]
    this.#booked = createLimiter({ name: 'booked', store, policies: few, onStoreError: 'throw' })
  }

  get keepsSockets(): boolean {
    return 'cluster' in this.#place && this.#place.client === 'node-redis'
  }

  /** Resolves when one permit is held and a call waits for it. Then everything is used, again and again. */
  async begin(): Promise<void> {
    const { store } = this.#opened
    this.#holding = await this.#held.acquire(this.#key, { maxWait: PATIENCE })
    this.#waiting = this.#held.acquire(this.#key, { maxWait: '1d' })
    this.#waiting.catch(() => {})
    for (let i = 0; i < 2 * PERMITS; i++) this.#again(() => this.#move())
    this.#again(() => this.#move(AbortSignal.timeout(someMs())))
    this.#again(() => this.#leased.consume(this.#key))
    this.#again(async () => (await this.#leased.consume(this.#key, { cost: 2 })).settle(1))
    this.#again(() => this.#booked.acquire(this.#key, { maxWait: '1s' }))
    this.#again(() =>
      this.#booked.acquire(this.#key, { maxWait: '1s', signal: AbortSignal.timeout(someMs()) }),
    )
    this.#again(() => this.#comeAndGo(this.#opened.store))
    // The connections that a store makes are closed while they connect.
    if (this.#place.client === 'own' && !('serve' in this.#place && this.#place.serve))
      this.#again(() => this.#openAndClose())
    const board = store.board?.('top-keys')
    if (!board) return
    this.#again(() => board.post(String(someMs()), 'a text', 1000))
    this.#again(() => fleetTopKeys(store, 'leased', { deadline: '50ms' }))
  }

  /** Ends the load and gives all permits back. Returns how many were there then, and how many were taken and given back before. */
  async end(): Promise<Used> {
    this.#isOver = true
    await Promise.all(this.#loops)
    await this.#holding!.release()
    await (await this.#waiting!).release()
    const last = await Promise.all([
      this.#held.acquire(this.#key, { maxWait: PATIENCE }),
      ...Array.from({ length: PERMITS }, () => this.#moving.acquire(this.#key, { maxWait: PATIENCE })),
    ])
    await Promise.all(last.map((permit) => permit.release()))
    const parts = [this.#held, this.#moving, this.#leased, this.#booked, this.#opened.store]
    for (const part of parts) await part.close()
    await this.#opened.end()
    const back = last.filter(({ allowed }) => allowed).length
    return { client: this.#place.client, back, moved: this.#moved }
  }

  /** Does something until the load ends. What fails is done again: its caller has got the error. */
  #again(act: () => unknown): void {
    const loop = async () => {
      while (!this.#isOver) {
        try {
          await act()
        } catch {}
        await pause(LOAD_MS)
      }
    }
    this.#loops.push(loop())
  }

  /** Takes a permit for a moment. */
  async #move(signal?: AbortSignal): Promise<void> {
    const permit = await this.#moving.acquire(this.#key, { maxWait: '5s', ...(signal && { signal }) })
    await permit.release()
    if (permit.allowed) this.#moved++
  }

  /** Waits for a permit that is held, with a subscription of its own, and leaves while that may be connecting. */
  async #comeAndGo(store: Store): Promise<void> {
    const semaphore = createSemaphore({ name: 'held', limit: 1, lease: LEASE, store })
    const waiting = semaphore.acquire(this.#key, { maxWait: PATIENCE }).then((permit) => permit.release())
    waiting.catch(() => {})
    await pause(someMs())
    await semaphore.close()
  }

  /** Opens another store, and closes it while it may be connecting. */
  async #openAndClose(): Promise<void> {
    const { store } = await open(this.#place)
    const limiter = createLimiter({ name: 'leased', store, policies: [gcra({ limit: 9, window: '1s' })] })
    limiter.consume(this.#key).catch(() => {})
    await this.#comeAndGo(store)
    await limiter.close()
    await store.close()
  }
}

interface Used {
  readonly client: string
  readonly back: number
  readonly moved: number
}

const LOAD_MS = 2

/** Milliseconds, at random: shorter and longer than it takes to connect. */
function someMs(): number {
  return 1 + Math.floor(30 * Math.random())
}
