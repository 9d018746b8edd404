import type { Decision, Store } from '@sluice/core'
import {
  type DeclarationOf,
  Listeners,
  copiedText,
  readOptions,
  storedKey,
  unchecked,
  warningOnce,
  warnProcessOnce,
} from '@sluice/core/internal'
import { type KeyHash, keyHashOf } from '../top-keys/key-hash.js'
import { share } from '../top-keys/posting.js'
import type { Denial } from './denial.js'
import { dayOf, denialId } from './denial-id.js'

export interface KeepDenialsOptions {
  /** A text of at least 32 characters that nobody can guess, the same in every process and for `sluice why --id`. */
  readonly secret: string
  /** Lists, reports and shares a hash in place of each key, as `topKeys` does. The id is that of the key itself. @default false */
  readonly hashKeys?: boolean | KeyHash
  /**
   * A store with a board, through which `lastDenials` reads those of all processes. The newest 50, of at most 8 kB together, are
   * written every 10 s, with the top keys that are shared there.
   * @default undefined: nothing is shared
   */
  readonly fleet?: Store
}

const KEEP_DENIALS = {
  secret: unchecked<string>(),
  hashKeys: unchecked<boolean | KeyHash | undefined>(),
  fleet: unchecked<Store | undefined>(),
} satisfies DeclarationOf<KeepDenialsOptions>

/** The event of a denial that is kept. */
export interface DeniedEvent extends Denial {
  readonly type: 'denied'
}

/** Made by `keepDenials`. */
export interface Denials {
  /** The id of a denial. Keeps it as the last of its key, and reports it as the event 'denied'. */
  readonly keep: (decision: Decision) => string
  /** The id of a denial, which is neither kept nor reported, for an answer of one's own (`onDenied`). */
  readonly idOf: (decision: Decision) => string
  /** The last denial of each of 1,000 keys, the newest first. */
  list(): readonly Denial[]
  /** Adds a listener of the denials that are kept. Returns a function that removes it. */
  on(event: 'denied', listener: (event: DeniedEvent) => void): () => void
  /** Shares nothing any more. */
  stop(): void
}

/**
 * Gives each denial an id, the same for one caller of one limiter all day (UTC), by which `sluice why --id` finds him: `keep` is the
 * option `denialId` of adapters. Keeps the last denial of each of 1,000 keys; those that were denied longest ago are forgotten.
 * @throws {PolicyError} INVALID_OPTION.
 * @example
 * const denials = keepDenials({ secret: process.env.SLUICE_SECRET, fleet: store })
 * app.use(rateLimit({ name: 'api', limit: 100, window: '1m', store, denialId: denials.keep }))
 * denials.on('denied', ({ id, limiter, key }) => console.log(id, limiter, key))
 */
export function keepDenials(options: KeepDenialsOptions): Denials {
  const { secret, hashKeys, fleet } = readOptions(KEEP_DENIALS, options, { what: 'keepDenials' })
  denialId(secret, { limiter: '', storedKey: '', at: 0 }) // a secret that is too short is refused now
  const hash = keyHashOf(hashKeys)
  const withHashedKey = (denial: Denial): Denial => ({ ...denial, key: hash(denial.key) })
  const lastDenials = new LastDenials(secret)
  const listeners = new Listeners<{ denied: DeniedEvent }>(['denied'], warningOnce('keepDenials'))
  const list = (most = MOST_KEYS): readonly Denial[] => lastDenials.newest(most).map(withHashedKey)
  // Denials are of many limiters: this stands in for one.
  const limiter = { name: 'keepDenials', isClosed: false, warn: warnProcessOnce }
  const unshare = fleet && share(fleet, { limiter, hash, denials: list })
  const keep = (decision: Decision): string => {
    const place = placeOf(decision)
    const denial = lastDenials.denialOf(place, decision)
    if (decision.allowed) return denial.id
    lastDenials.keep(place, denial)
    try {
      if (listeners.heard.denied) listeners.emit('denied', { type: 'denied', ...withHashedKey(denial) })
    } catch (error) {
      listeners.failed('denied', error) // hashKeys has thrown, which does not change the answer
    }
    return denial.id
  }
  return {
    keep,
    idOf: (decision) => lastDenials.denialOf(placeOf(decision), decision).id,
    list: () => list(),
    on: (event, listener) => listeners.on(event, listener),
    stop: () => unshare?.(),
  }
}

/** The last denial of each of 1,000 keys. */
class LastDenials {
  /** By limiter and stored key; the one denied longest ago comes first. */
  readonly #byPlace = new Map<string, Denial>()

  constructor(readonly secret: string) {}

  /** The denial that a decision is. Its id is that of the last denial of its key, if that is of today: a hash is saved then. */
  denialOf(place: string, { limiter, policy, reason, retryAfterMs }: Decision): Denial {
    const key = place.slice(limiter.length + 1)
    const at = Date.now()
    const last = this.#byPlace.get(place)
    const isOfToday = last && dayOf(last.at) === dayOf(at)
    const id = isOfToday ? last.id : denialId(this.secret, { limiter, storedKey: key, at })
    return { id, limiter, policy, key, reason: String(reason), retryAfterMs, at }
  }

  /** Keeps a denial as the newest, in place of the last one of its key. */
  keep(place: string, denial: Denial): void {
    const denials = this.#byPlace
    // Deleted first, so that it becomes the newest of the map.
    const hadLast = denials.delete(place)
    if (!hadLast && denials.size >= MOST_KEYS) denials.delete(denials.keys().next().value!)
    denials.set(place, denial)
  }

  newest(most: number): readonly Denial[] {
    return [...this.#byPlace.values()].slice(-most).toReversed()
  }
}

/** A text of its own for each key of each limiter, whose names have no line breaks. */
function placeOf({ limiter, key }: Decision): string {
  return copiedText(`${limiter}\n${storedKey(key)}`)
}

const MOST_KEYS = 1000
