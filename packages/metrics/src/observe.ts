import { type Limiter, PolicyError, type Semaphore, type Store, StoreError } from '@sluice/core'
import {
  counting,
  type DeclarationOf,
  type DecisionCounter,
  func,
  readOptions,
  type Settings,
  text,
  unchecked,
} from '@sluice/core/internal'
import { type MeterLike, openTelemetrySink } from './sinks/open-telemetry.js'
import { type PromClientLike, prometheusSink, type RegistryLike } from './sinks/prometheus.js'
import type { Sink, Source } from './sinks/sink.js'
import { LimiterCounts } from './sources/limiter-counts.js'
import { isOverruled } from './sources/policy-counts.js'
import { tagOf, type TagOf } from './sources/tag-of.js'
import { WaitingCounts } from './sources/waiting-counts.js'
import { countKeys } from './top-keys/top-keys.js'

export interface ObserveOptions {
  /** A meter of OpenTelemetry: `metrics.getMeter('app')`. Either this or `prometheus` is required. */
  readonly meter?: MeterLike
  /** The module prom-client, as it was imported. */
  readonly prometheus?: PromClientLike
  /**
   * The registry of prom-client.
   * @default prometheus.register
   */
  readonly registry?: RegistryLike
  /**
   * Limiters: makes a short text of each key, by which decisions are counted too. At most 100 values of up to 100 characters, then
   * 'other'. One that throws or returns no string, but for example a promise, is reported as the warning INVALID_TAG.
   * @default undefined: decisions are not counted by tag
   */
  readonly tag?: TagOf
  /**
   * Queues, stores and policy files, which have no names: the attribute `name` or `store`.
   * @default 'default'
   */
  readonly name?: string
}

const OBSERVE = {
  meter: unchecked<MeterLike | undefined>(),
  prometheus: unchecked<PromClientLike | undefined>(),
  registry: unchecked<RegistryLike | undefined>(),
  tag: func<TagOf>('of the key'),
  name: text('a string', /^/, 'default'),
} satisfies DeclarationOf<ObserveOptions>

/** A queue or a client of @sluice/outbound. A client has no numbers of calls that wait or are under way. */
export interface QueueLike {
  readonly size?: number
  readonly pending?: number
  setPolicies(...args: never): void
  on(
    type: 'waited' | 'denied' | 'adapted',
    listener: (event: { readonly key: string; readonly waitMs?: number; readonly limit?: number }) => void,
  ): () => void
}

/** A policy file that is watched, as `watchPolicies` of @sluice/policies/node returns it. */
export interface PoliciesLike {
  readonly ageMs: number
  readonly digest: string
  readonly errors: number
  ready(): Promise<void>
}

/**
 * Reports what a limiter, semaphore, queue, memory store or watched policy file does to a meter of OpenTelemetry or a registry of prom-client.
 * docs/metrics.md lists the instruments. Decisions are counted in arrays and read when they are collected. The keys with the most
 * calls of a limiter are counted too, for `topKeys`.
 *
 * Returns a function that ends it. Observed twice with the same meter or registry, an object is counted once. Limiters of one
 * name are reported together. Once a limiter is closed, what it has counted stays.
 * @throws {PolicyError} INVALID_OPTION for what cannot be observed, and for a meter or registry that is none; StoreError
 * CLOSED for a limiter or semaphore that is closed.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * import { observe } from '@sluice/metrics'
 * import * as promClient from 'prom-client'
 * const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1m' })] })
 * observe(limiter, { prometheus: promClient })
 */
export function observe(
  observed: Limiter | Semaphore | QueueLike | Store | PoliciesLike,
  options: ObserveOptions,
): () => void {
  const kind = kindOf(observed)
  const settings = readOptions(OBSERVE, options ?? {}, { what: 'observe' })
  const { tag, name } = settings
  const sink = sinkOf(settings)
  const known = sink.observed.get(observed)
  if (known) return known
  const end = begin()
  const stop = (): void => {
    if (sink.observed.delete(observed)) end()
  }
  sink.observed.set(observed, stop)
  return stop

  /** Begins to observe the object, by its kind, and returns the function that ends it. */
  function begin(): () => void {
    if (kind === 'limiter') return observeLimiter(observed as Limiter, sink, tag)
    if (kind === 'semaphore') return observeSemaphore(observed as Semaphore, sink)
    if (kind === 'policies') return observePolicies(observed as PoliciesLike, sink, name)
    if (kind === 'queue') return observeQueue(observed as QueueLike, sink, name)
    return observeStore(observed as Store, sink, name)
  }
}

/**
 * Counts a limiter's decisions; if `tag` is given, also by the text that it makes of each key. Records how long calls waited for a
 * store outside this process, and how long calls of `acquire` waited for their turn. Limiters of one name share their counts. If one
 * key denied a whole call on several keys, the decisions of keys that allowed it are not counted (`isOverruled`). Returns a function
 * that ends all this.
 */
function observeLimiter(limiter: Limiter, sink: Sink, tag: TagOf | undefined): () => void {
  if (limiter.isClosed) throw new StoreError('CLOSED', `the limiter '${limiter.name}' is closed`)
  const { name } = limiter
  const counts = sharedSource(sink, `limiter ${name}`, () => new LimiterCounts(name))
  counts.announce(limiter.policies)
  const ofLimiter = { limiter: name }
  const [allowed, denied] = [waitAttributes('limiter', name, true), waitAttributes('limiter', name, false)]
  const warn = (message: string): void => limiter.warn('INVALID_TAG', message)
  const endState = counts.state.follow(limiter)
  /** Counts a decision, unless another key of its call overruled it, and records its waits in any case. */
  const count: DecisionCounter = (decision, operation, decidedBy, storeMs, together) => {
    const isCounted = !isOverruled(decision, decidedBy, together)
    if (isCounted) counts.count(decision, decidedBy)
    // The store is outside this process: from now on it is reported whether it is available.
    if (storeMs > 0) {
      counts.state.usesStore(limiter)
      sink.storeDuration(storeMs / 1000, ofLimiter)
    }
    if (operation === 'acquire') {
      sink.acquireDuration(decision.waitMs / 1000, decision.allowed ? allowed : denied)
    }
    if (tag && isCounted) counts.tags.add(tagOf(decision.key, tag, warn), decision)
  }
  const ends = [limiter.on('decision', counting(count)), countKeys(limiter), endState]
  return () => ends.forEach((end) => end())
}

/**
 * Counts a semaphore's permits and the calls that wait for one, and records how long they waited and which limit an
 * adaptive semaphore found. Returns a function that ends it. Semaphores of one name share their counts.
 */
function observeSemaphore(semaphore: Semaphore, sink: Sink): () => void {
  if (semaphore.isClosed) throw new StoreError('CLOSED', `the semaphore '${semaphore.name}' is closed`)
  const { name } = semaphore
  const counts = sharedSource(sink, `semaphore ${name}`, () => new WaitingCounts('semaphore', name))
  const granted = waitAttributes('semaphore', name, true)
  const denied = waitAttributes('semaphore', name, false)
  const ends = [
    counts.follow({
      waiting: () => semaphore.waiting,
      inUse: () => semaphore.inUse,
      isOver: () => semaphore.isClosed && semaphore.inUse === 0,
    }),
    semaphore.on('granted', ({ waitMs }) => sink.acquireDuration(waitMs / 1000, granted)),
    semaphore.on('adapted', (event) => counts.adapted(event)),
    semaphore.on('denied', ({ waitMs }) => sink.acquireDuration(waitMs / 1000, denied)),
  ]
  return () => ends.forEach((end) => end())
}

/**
 * Counts a queue's waiting and running calls under `name`, and records how long calls waited and which limits it found by itself.
 * Returns a function that ends it. A queue does not report that it is closed, so it is held weakly, and has ended when it is
 * garbage-collected: no call waits in it then.
 */
function observeQueue(queue: QueueLike, sink: Sink, name: string): () => void {
  const counts = sharedSource(sink, `queue ${name}`, () => new WaitingCounts('queue', name))
  const allowed = waitAttributes('queue', name, true)
  const followed = new WeakRef(queue)
  const ends = [
    counts.follow({
      waiting: () => followed.deref()?.size ?? 0,
      inUse: () => followed.deref()?.pending ?? 0,
      isOver: () => !followed.deref(),
    }),
    queue.on('adapted', ({ key, limit = 0 }) => counts.adapted({ key, limit })),
    queue.on('waited', ({ waitMs = 0 }) => sink.acquireDuration(waitMs / 1000, allowed)),
  ]
  return () => ends.forEach((end) => end())
}

/**
 * Reports how many keys a memory store holds, under `name`, which no other store may have. Other stores do not know their
 * `size`, and nothing is observed of them: their limiters report what they do. Returns a function that ends it.
 */
function observeStore(store: Store & { readonly size?: number }, sink: Sink, name: string): () => void {
  if (store.size === undefined) return () => {}
  return addNamedSource(sink, 'store', name, (instrument, report) => {
    if (instrument === 'keys') report(store.size!, { store: name })
  })
}

/** Reports the age, the errors and the digest of a watched policy file under `name`. Returns a function that ends it. */
function observePolicies(watched: PoliciesLike, sink: Sink, name: string): () => void {
  return addNamedSource(sink, 'policy file', name, (instrument, report) => {
    if (instrument === 'policiesAge') report(watched.ageMs / 1000, { name })
    if (instrument === 'policiesErrors') report(watched.errors, { name })
    if (instrument === 'policiesInForce' && watched.digest) report(1, { name, digest: watched.digest })
  })
}

/**
 * Adds a source of values to a sink, under a name that no other source of the kind has. Returns a function that removes it.
 * @throws {PolicyError} DUPLICATE_NAME.
 */
function addNamedSource(sink: Sink, kind: string, name: string, read: Source['read']): () => void {
  const id = `${kind} ${name}`
  if (sink.sources.has(id))
    throw new PolicyError('DUPLICATE_NAME', `two ${kind}s are named '${name}': give one a name of its own`)
  sink.sources.set(id, { isOver: false, read })
  return () => void sink.sources.delete(id)
}

/**
 * Returns the source of values that a sink has under an id, so that objects of one name share it. If there is none yet,
 * `make` makes one, which is added.
 */
function sharedSource<S extends Source>(sink: Sink, id: string, make: () => S): S {
  const known = sink.sources.get(id) as S | undefined
  if (known) return known
  const source = make()
  sink.sources.set(id, source)
  return source
}

/** The attributes under which the duration of a wait is recorded: what was waited for, its name, and whether the call passed. */
function waitAttributes(kind: string, name: string, allowed: boolean): Record<string, string> {
  return { kind, name, result: allowed ? 'allowed' : 'denied' }
}

/**
 * The kind of an observed object, told by its methods and not by its class, because several copies of @sluice/core may
 * meet in one process.
 * @throws {PolicyError} INVALID_OPTION for any other object.
 */
function kindOf(observed: unknown): 'limiter' | 'semaphore' | 'queue' | 'store' | 'policies' {
  const parts = (observed ?? {}) as Record<string, unknown>
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof parts[name] === 'function')
  if (has('consume', 'acquire', 'on')) return 'limiter'
  if (has('acquire', 'resize', 'on')) return 'semaphore'
  if (has('setPolicies', 'on')) return 'queue'
  if (has('keyspace', 'now', 'close')) return 'store'
  if (has('ready', 'require', 'close')) return 'policies'
  throw new PolicyError(
    'INVALID_OPTION',
    'observe takes a limiter, a semaphore, a queue, a store or a watched policy file, made by createLimiter() and the like',
  )
}

/**
 * Returns the sink of the meter or registry that the options name, to which values are reported. Each has only one, made for the
 * first object that is observed, so that its instruments are registered once. A registry may have been cleared since then, so its
 * metrics are registered again (`register`).
 * @throws {PolicyError} INVALID_OPTION unless either a meter or `prometheus` is given.
 */
function sinkOf({ meter, prometheus, registry }: Settings<typeof OBSERVE>): Sink {
  if ((meter === undefined) === (prometheus === undefined)) {
    throw new PolicyError('INVALID_OPTION', 'either a meter or prometheus is required, and not both')
  }
  if (meter !== undefined) return sinkIn(meter, () => openTelemetrySink(meter))
  const owner = registry ?? prometheus!.register
  const sink = sinkIn(owner, () => prometheusSink(prometheus!, owner))
  sink.register?.()
  return sink
}

/**
 * Returns the sink of a meter or registry (`owner`). If it has none yet, `make` makes one, which is remembered. `owner`
 * is not checked before; `make` throws for one that is no meter or registry.
 */
function sinkIn(owner: object, make: () => Sink): Sink {
  const known = owner && SINKS.get(owner)
  if (known) return known
  const sink = make()
  SINKS.set(owner, sink)
  return sink
}

/** Under a registered symbol: two copies of this package would register the same names twice. */
const SINKS_OF_ALL_COPIES = Symbol.for('sluice.metrics.sinks.1')
const ofProcess = globalThis as unknown as Record<symbol, WeakMap<object, Sink> | undefined>
const SINKS = (ofProcess[SINKS_OF_ALL_COPIES] ??= new WeakMap<object, Sink>())
