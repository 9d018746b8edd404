import { createLimiter, InputError, type Limiter, PolicyError, type Store } from '@sluice/core'
import { type KeyRecord, partsOf, readRecord, RESERVING, STATE_FORMAT } from '@sluice/core/internal'
import { apiKeyIn, apiKeyKey, clientAddress, ipKey, userKey } from '@sluice/http'
import { type Denial, denialId, lastDenials } from '@sluice/metrics'
import type { KnownLimits } from './known-limits.js'
import { setTimeout as pause } from 'node:timers/promises'

/*
 * A store and its limiters as an operator sees them. It prints nothing and asks nothing, so that a terminal, a console or a server
 * may each do that in its own way.
 */

/** A store that was opened for an operator. Only of Redis keys can be listed: its masters are asked, one after the other. */
export interface OpenedStore {
  readonly store: Store
  readonly redis?: { readonly prefix: string; masters(): readonly Scan[] } | undefined
  close(): Promise<void>
}

/** SCAN of one master: the next cursor and the keys of a page. */
type Scan = (cursor: string, match: string, most: number) => Promise<readonly [string, readonly string[]]>

/** A key of a limiter, as stores keep it. */
export interface FoundKey {
  readonly limiter: string
  readonly key: string
  /** Whether it is a key of a limiter that reserves; of denials it is not known. */
  readonly reserves?: boolean | undefined
}

/** A blocked key. A block without a record is of a penalty, or of an older process. */
export interface BlockedKey extends FoundKey {
  readonly until: Date
  readonly isRecorded: boolean
  readonly reason?: string | undefined
  readonly by?: string | undefined
}

/** Things that an operation passes over, in words, and how many of each. */
export type LeftAlone = Map<string, number>

export class Site {
  readonly #limiters = new Map<string, readonly Limiter[]>()

  /**
   * Describes a store that an operator looks into, and the limits kept there. Has reading the store write nothing (`quiet`).
   * `warned` gets the warnings of limiters, such as that Redis evicts keys.
   */
  constructor(
    readonly opened: OpenedStore,
    readonly limits: readonly KnownLimits[],
    readonly warned: (message: string) => void = () => {},
  ) {
    quiet(opened.store)
  }

  /**
   * Returns two limiters of the same limits: one that reserves and one that does not. Each has its own state in the store, and the
   * limits do not say which of them processes use. Both throw if the store fails: an operator must not be answered by a guess.
   */
  limitersOf({ name, policies, plans }: KnownLimits): readonly Limiter[] {
    const known = this.#limiters.get(name)
    if (known) return known
    const tiers = [...(plans?.values() ?? [])]
    const settings = { store: this.opened.store, onStoreError: 'throw', deadline: '10s' } as const
    const limiters = [{}, { reservations: {} }].map((more) =>
      createLimiter({ name, policies, tiers, ...settings, ...more }),
    )
    // The limiter that reserves adds only a warning about giving units back, which is for its processes.
    limiters.forEach((limiter) =>
      limiter.on('warning', ({ message }) => limiter.reserves || this.warned(message)),
    )
    this.#limiters.set(name, limiters)
    return limiters
  }

  /** The records (overrides, blocks and holds that operators made) of all limiters that are in force, the latest first. */
  async records(leftAlone: LeftAlone): Promise<readonly KeyRecord[]> {
    const { records, now } = await this.opened.store.records!().read(0, [])
    const inForce = records.filter(({ text, until }) => text !== '' && until > now)
    const readable = inForce.flatMap((record) => readRecord(record) ?? [])
    if (readable.length < inForce.length)
      leftAlone.set('records that this version does not know', inForce.length - readable.length)
    return readable.toSorted((one, other) => other.version - one.version)
  }

  /**
   * Yields the blocked keys of all limiters, or of the limiter `named`: first those with a record, then on Redis those that the
   * state of a known limiter blocks, as they are found.
   */
  async *blocked(leftAlone: LeftAlone, signal?: AbortSignal, named?: string): AsyncGenerator<BlockedKey> {
    const isMeant = (limiter: string): boolean => named === undefined || limiter === named
    const listed = new Set<string>()
    for (const { kind, limiter, stored, until, content } of await this.records(leftAlone)) {
      if (kind !== 'block' || !isMeant(limiter)) continue
      listed.add(`${limiter}\n${stored}`)
      const { key, reason, by } = content
      yield { limiter, key, until: new Date(until / 1000), isRecorded: true, reason, by }
    }
    for await (const page of this.keys(leftAlone, signal)) {
      const meant = page.filter(({ limiter }) => isMeant(limiter))
      const rows = await Promise.all(meant.map((found) => this.#blockInState(found, listed, leftAlone)))
      yield* rows.filter((row) => row !== undefined)
    }
  }

  /** The block of a key by its state, if it is blocked and not `listed` yet. A key that cannot be asked for is counted in `leftAlone`. */
  async #blockInState(
    { limiter, key, reserves }: FoundKey,
    listed: Set<string>,
    leftAlone: LeftAlone,
  ): Promise<BlockedKey | undefined> {
    const limits = this.limits.find(({ name }) => name === limiter)
    if (!limits)
      return void addTo(leftAlone, `keys of limiter '${limiter}', whose limits no --policies names`)
    if (key.startsWith('sha256:')) return void addTo(leftAlone, LONG_KEYS)
    if (listed.has(`${limiter}\n${key}`)) return undefined
    const limiterOfState = this.limitersOf(limits).find((candidate) => candidate.reserves === reserves)!
    const { reason, retryAfterMs } = await limiterOfState.peek(key, { cost: 0 })
    if (reason !== 'blocked') return undefined
    listed.add(`${limiter}\n${key}`)
    return { limiter, key, until: new Date(Date.now() + retryAfterMs), isRecorded: false }
  }

  /** The last denials that processes have posted. Posts, or parts of them, that cannot be read are counted in `leftAlone`. */
  async denials(leftAlone: LeftAlone): Promise<readonly Denial[]> {
    const { denials, unknown, malformed } = await lastDenials(this.opened.store)
    for (const format of unknown)
      addTo(leftAlone, `posts of format ${format}, which this version does not know`)
    if (malformed > 0) leftAlone.set('posts that cannot be read', malformed)
    return denials
  }

  /**
   * Finds the key of a denial by the denial's id. Without `secret` it is the key that processes have posted with the id. With
   * `secret`, which makes ids out of keys, a posted key that does not give this id is only a hash of the key: then the keys in
   * Redis are searched for one that gives the id today or yesterday. `looked` gets the number of keys searched so far.
   */
  async find(
    id: string,
    secret: string | undefined,
    leftAlone: LeftAlone,
    looked: (keys: number) => void,
    signal?: AbortSignal,
  ): Promise<FoundKey | undefined> {
    const posted = (await this.denials(leftAlone)).find((denial) => denial.id === id)
    if (secret === undefined) return posted
    const days = [Date.now(), Date.now() - DAY_MS]
    const hasId = ({ limiter, key: storedKey }: FoundKey): boolean =>
      days.some((at) => denialId(secret, { limiter, storedKey, at }) === id)
    // Asked also without a posted key: a secret that is not valid is refused before any key is searched.
    if (hasId(posted ?? { limiter: '', key: '' })) return posted
    let count = 0
    for await (const page of this.keys(leftAlone, signal)) {
      const found = page.find(hasId)
      if (found) return found
      looked((count += page.length))
    }
    return posted
  }

  /**
   * Yields the keys of limiters in Redis, a page at a time, at most 20,000 a second. A key may come twice. Other keys are counted in
   * `leftAlone`. Without Redis there are none.
   */
  async *keys(leftAlone: LeftAlone, signal?: AbortSignal): AsyncGenerator<readonly FoundKey[]> {
    const { redis } = this.opened
    const prefix = redis?.prefix ?? ''
    const match = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`
    for (const scan of redis?.masters() ?? []) {
      let cursor = '0'
      do {
        const [next, page] = await scan(cursor, match, PAGE)
        cursor = next
        yield page.flatMap((redisKey): readonly FoundKey[] => {
          const { format, limiter = '', shapes = '', key } = partsOf(prefix, redisKey) ?? {}
          if (format === undefined) return addTo(leftAlone, 'keys of other software')
          if (format !== STATE_FORMAT)
            return addTo(leftAlone, `keys of format ${format}, which this version does not know`)
          if (shapes === 'semaphore') return addTo(leftAlone, 'keys of semaphores')
          if (limiter === '' || shapes === 'board') return []
          if (key === undefined) return addTo(leftAlone, LONG_KEYS)
          return [{ limiter, key, reserves: shapes.endsWith(`,${RESERVING}`) }]
        })
        await pause(PAUSE_MS, undefined, { signal })
      } while (cursor !== '0')
    }
  }

  /** Closes the limiters, then the store. */
  async close(): Promise<void> {
    await Promise.all([...this.#limiters.values()].flat().map((limiter) => limiter.close()))
    await this.opened.close()
  }
}

const PAGE = 500
const PAUSE_MS = 25
const DAY_MS = 86_400_000
const LONG_KEYS = 'keys so long that Redis has their digest alone'

/** Counts one thing that is left alone. Returns an empty list: it gives no key. */
function addTo(leftAlone: LeftAlone, what: string): readonly never[] {
  leftAlone.set(what, (leftAlone.get(what) ?? 0) + 1)
  return []
}

/**
 * Changes a store so that reading it writes and warns of nothing. Whoever reads its records names those that have ended, which the
 * store then drops: here an empty list stands for them. Without its `endpoint` a store does not warn of an outage: calls reject.
 */
function quiet(store: Store): void {
  const records = store.records?.()
  if (!records) throw new PolicyError('INVALID_OPTION', 'the store keeps no records')
  const write = records.write.bind(records)
  const read = (since: number) => records.read(since, [])
  Object.defineProperties(store, {
    records: { value: () => ({ read, write }) },
    endpoint: { value: undefined },
  })
}

/**
 * Returns the key under which a limiter counts a caller, whom an operator names by an address, a user's id or an API key (`text`).
 * A text that begins as keys do (`ip:`, `user:`, `api-key:`) is a key already. `by` is what the limiter counts by; an address is
 * taken as one in any case, because each limiter counts by address the callers who lack the rest.
 * @throws {InputError} INVALID_KEY if the limiter counts by address, and the text is none.
 */
export function keyOf(text: string, by: string | undefined): string {
  if (/^(?:ip|user|api-key):./.test(text)) return text
  if (clientAddress(text) !== undefined) return ipKey(text)
  if (by === undefined) return text
  if (by === 'ip') throw new InputError('INVALID_KEY', `it counts by address, and '${text}' is none`)
  return by.startsWith('field:') ? userKey(text) : apiKeyKey(apiKeyIn(by.slice('header:'.length), text) ?? '')
}
