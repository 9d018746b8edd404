import { createLimiter, InputError, type Limiter, type Policy, PolicyError, type Store } from '@sluice/core'
import { type KeyRecord, partsOf, readRecord, type RedisKeyParts, STATE_FORMAT } from '@sluice/core/internal'
import { apiKeyIn, apiKeyKey, clientAddress, ipKey, userKey } from '@sluice/http'
import { setTimeout as pause } from 'node:timers/promises'

/*
 * A store and its limiters as an operator sees them. It prints nothing and asks nothing, so that a terminal, a console or a server
 * may each do that in its own way.
 */

/** The limits of one limiter: those of a policy file, or of a process. */
export interface KnownLimits {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly plans?: ReadonlyMap<string, readonly Policy[]> | undefined
  /** The part of a call that names the caller: 'ip', 'header:NAME' or 'field:PATH'. */
  readonly by?: string | undefined
}

/** A server of Redis that has keys: the only one, or a master of a Cluster. */
export interface RedisNode {
  /** SCAN: the next cursor and the keys of a page. */
  scan(cursor: string, match: string, count: number): Promise<readonly [string, readonly string[]]>
}

/** A store that was opened for an operator. */
export interface OpenedStore {
  readonly store: Store
  /** The prefix of its keys, and its masters as they are now. Only of Redis: elsewhere keys cannot be listed. */
  readonly redis?: { readonly prefix: string; masters(): readonly RedisNode[] } | undefined
  close(): Promise<void>
}

/** A key that a limiter denies until an instant, whoever has blocked it. */
export interface BlockedKey {
  readonly limiter: string
  readonly key: string
  readonly until: Date
  /** Of a block with a record; one without is of a penalty or of an older process. */
  readonly reason?: string | undefined
  readonly by?: string | undefined
  readonly isRecorded: boolean
}

/** What is left alone, and of how many keys. */
export type LeftAlone = ReadonlyMap<string, number>

/** Opened limiters of a store. `close` closes them and leaves the store open. */
export class Site {
  readonly #limiters = new Map<string, Limiter>()

  /** `warned` gets the warnings of limiters, such as that Redis evicts keys. */
  constructor(
    readonly opened: OpenedStore,
    readonly limits: readonly KnownLimits[],
    readonly warned: (message: string) => void = () => {},
  ) {
    quiet(opened.store)
  }

  /** The limiter of known limits. It never decides without the store: an operator must not be answered by a guess. */
  limiterOf({ name, policies, plans }: KnownLimits): Limiter {
    const made = this.#limiters.get(name)
    if (made) return made
    const tiers = [...(plans?.values() ?? [])]
    const settings = { store: this.opened.store, onStoreError: 'throw', deadline: '10s' } as const
    const limiter = createLimiter({ name, policies, tiers, ...settings })
    limiter.on('warning', ({ message }) => this.warned(message))
    this.#limiters.set(name, limiter)
    return limiter
  }

  /** The records of all limiters of the store that are in force, the latest first, and how many this version cannot read. */
  async records(): Promise<{ readonly records: readonly KeyRecord[]; readonly unread: number }> {
    const { store } = this.opened
    const { records, now } = await store.records!().read(0, [])
    const inForce = records.filter(({ text, until }) => text !== '' && until > now)
    const read = inForce.flatMap((each) => readRecord(each) ?? [])
    return {
      records: read.toSorted((one, other) => other.version - one.version),
      unread: inForce.length - read.length,
    }
  }

  /**
   * The blocked keys of the store: those with a record, and on Redis those that the state of a known limiter blocks, each as they
   * are found. `left` counts what is left alone, by what it is.
   */
  async *blocked(left: Map<string, number>, signal?: AbortSignal): AsyncGenerator<BlockedKey> {
    const { records, unread } = await this.records()
    if (unread > 0) left.set('records that this version does not know', unread)
    const listed = new Set<string>()
    for (const { kind, limiter, stored, until, content } of records) {
      if (kind !== 'block') continue
      listed.add(`${limiter}\n${stored}`)
      const { key, reason, by } = content
      yield { limiter, key, until: new Date(until / 1000), reason, by, isRecorded: true }
    }
    for await (const found of this.keys(left, signal)) {
      const asked = found.filter(({ limiter, key }) => !listed.has(`${limiter}\n${key}`))
      for (const { limiter, key } of asked) listed.add(`${limiter}\n${key}`)
      const unique = new Map(asked.map((each) => [`${each.limiter}\n${each.key}`, each]))
      const rows = await Promise.all([...unique.values()].map((each) => this.#blockOf(each)))
      yield* rows.filter((row) => row !== undefined)
    }
  }

  async #blockOf({ limiter: name, key }: FoundKey): Promise<BlockedKey | undefined> {
    const limiter = this.limiterOf(this.limits.find((each) => each.name === name)!)
    const { reason, retryAfterMs } = await limiter.peek(key, { cost: 0 })
    if (reason !== 'blocked') return undefined
    return { limiter: name, key, until: new Date(Date.now() + retryAfterMs), isRecorded: false }
  }

  /**
   * The keys of known limiters in Redis, a page at a time, at most 20,000 a second over all masters. A key may come twice. `left`
   * counts those that are left alone: of unknown limiters, of other formats, and those of which Redis has only a digest.
   */
  async *keys(left: Map<string, number>, signal?: AbortSignal): AsyncGenerator<readonly FoundKey[]> {
    const { redis } = this.opened
    const names = new Set(this.limits.map(({ name }) => name))
    const match = `${redis?.prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`
    for (const node of redis?.masters() ?? []) {
      let cursor = '0'
      do {
        const [next, found] = await node.scan(cursor, match, PAGE)
        cursor = next
        yield found.flatMap((each) => {
          const parts = partsOf(redis!.prefix, each)
          const other = otherThanKey(parts, names)
          if (other !== undefined) left.set(other, (left.get(other) ?? 0) + 1)
          return other === undefined ? [parts as FoundKey] : []
        })
        await pause(PAUSE_MS, undefined, { signal })
      } while (cursor !== '0')
    }
  }

  /** Closes the limiters, then the store. */
  async close(): Promise<void> {
    await Promise.all([...this.#limiters.values()].map((limiter) => limiter.close()))
    await this.opened.close()
  }
}

/** A key of a known limiter. */
export type FoundKey = RedisKeyParts & { readonly key: string }

const PAGE = 500
const PAUSE_MS = 25

/**
 * Has the store told of no record that has ended, which it would drop: reading writes nothing. Without an `endpoint` an outage, of which
 * each call rejects, is no warning of the process as well.
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

/** What a key of Redis is, in words, if it is not one of a known limiter that can be asked about. */
function otherThanKey(parts: RedisKeyParts | undefined, names: ReadonlySet<string>): string | undefined {
  if (!parts) return 'keys of other software'
  const { format, limiter, shapes, key } = parts
  if (format !== STATE_FORMAT) return `keys of format ${format}, which this version does not know`
  if (limiter === '' || /^(?:board|semaphore|records)$/.test(shapes)) return 'keys of no limiter'
  if (!names.has(limiter)) return `keys of limiter '${limiter}', whose limits no --policies names`
  return key === undefined || key.startsWith('sha256:')
    ? 'keys so long that Redis has their digest alone'
    : undefined
}

/**
 * The key under which a limiter counts a caller whom people name by an address, a user's id or an API key. A text that begins as a
 * ready key does (`ip:`, `user:`, `api-key:`) is that key. A limiter that counts by anything also counts by address those who lack it.
 * @throws {InputError} INVALID_KEY where a limiter that counts by address is given none.
 */
export function keyOf(text: string, by: string | undefined): string {
  if (/^(?:ip|user|api-key):./.test(text)) return text
  if (clientAddress(text) !== undefined) return ipKey(text)
  if (by === undefined) return text
  if (by === 'ip') throw new InputError('INVALID_KEY', `it counts by address, and '${text}' is none`)
  return by.startsWith('field:') ? userKey(text) : apiKeyKey(apiKeyIn(by.slice(7), text) ?? '')
}
