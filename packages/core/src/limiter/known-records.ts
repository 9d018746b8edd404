import type { Policy } from '../algorithms/contract/policy.js'
import type { MaybePromise, RecordChanges, Records, Store, StoredRecord } from '../stores/store.js'
import { nowMs, setTimer } from '../values/clock.js'
import { inCommon } from '../values/contract.js'
import { StoreError } from '../values/errors.js'
import { isPromise } from '../values/promises.js'
import { heldWeakly, WeakValues } from '../values/weak-values.js'
import { ExemptKeyspace } from './exempt-keyspace.js'
import type { PolicySet } from './policy-set.js'

/*
 * The records of a store, as this process knows them. Each process reads what has changed once a second, whatever the number of
 * limiters, and keeps all of it, so a decision asks a map of its limiter, and not even that where the limiter has no records.
 */

export type RecordKind = 'override' | 'block' | 'hold'

/** The content of a record: JSON in the store. */
export interface RecordContent {
  /** As the caller gave it. */
  readonly key: string
  readonly reason?: string | undefined
  readonly by?: string | undefined
  readonly exempt?: true | undefined
  readonly factor?: number | undefined
  /** For each policy of lists of these shapes: its limit, its limit and capacity, or null where both stay. */
  readonly limits?: readonly (number | readonly [limit: number, capacity: number] | null)[] | undefined
  readonly shapes?: string | undefined
}

/** A record of one key. Instants are microseconds on the store's clock. */
export interface KeyRecord extends Omit<StoredRecord, 'text'> {
  readonly kind: RecordKind
  readonly limiter: string
  /** The key as stores keep it. */
  readonly stored: string
  readonly content: RecordContent
}

/** What happened to a record: it was written, was removed, or came to its end. */
export type RecordChange = 'set' | 'removed' | 'ended'
export type RecordListener = (change: RecordChange, record: KeyRecord) => void

/** Returns the id of a record. In JSON two lone surrogates stay apart, and the line break is the first. */
export function recordId(kind: RecordKind, limiter: string, stored: string): string {
  return `${kind} ${limiter}\n${JSON.stringify(stored)}`
}

/** Reads a record of a store; undefined for one that was removed, or that this version does not know. */
export function readRecord({ text, ...rest }: StoredRecord): KeyRecord | undefined {
  const [, kind, limiter, stored] = /^(override|block|hold) (.+)\n(.*)$/.exec(rest.id) ?? []
  try {
    const content = JSON.parse(text) as RecordContent
    return {
      ...rest,
      kind: kind as RecordKind,
      limiter: limiter!,
      stored: JSON.parse(stored!) as string,
      content,
    }
  } catch {
    return undefined
  }
}

/** The records of one limiter's keys. */
export class LimiterRecords {
  /** By key as stores keep it. Undefined where there are none; empty before the first read. */
  byKey: Map<string, KnownKey> | undefined
  #marks = new Marks()
  /** Whether calls have to wait for the first read. */
  isUnread: boolean
  readonly listeners = new Set<RecordListener>()

  constructor(readonly known: KnownRecords | undefined) {
    this.isUnread = known !== undefined && !known.isRead
    if (this.isUnread) this.byKey = new Map()
  }

  /** Has `listener` called with what becomes of records, from the first read on, which begins now. */
  listen(listener: RecordListener): void {
    this.listeners.add(listener)
    this.known?.unread()?.catch(() => {})
  }

  /** The set by which a call on a key is decided: `set`, or what an override makes of it. */
  ruled(set: PolicySet, stored: string): PolicySet {
    if (!this.#marks.has(stored)) return set
    const found = this.byKey?.get(stored)
    if (found === undefined || found.until === 0) return set
    const now = this.known!.now()
    if (found.until <= now || (found.isExempt && found.blockedUntil > now)) return set
    if (now - found.notedAt >= NOTED_US) {
      found.notedAt = now
      this.known!.applied.add(found.records.override!.id)
    }
    return found.setFor(set)
  }

  /** Sets what is known of a record, or that it is gone. */
  change({ stored, kind }: KeyRecord, record: KeyRecord | undefined): void {
    this.byKey ??= new Map()
    const key = this.byKey.get(stored) ?? new KnownKey()
    if (record) this.byKey.set(stored, key)
    if (record) this.#marks.add(stored)
    key.change(kind, record)
    if (!Object.values(key.records).some(Boolean)) this.byKey.delete(stored)
    if (this.byKey.size === 0 && !this.isUnread) [this.byKey, this.#marks] = [undefined, new Marks()]
  }
}

/** Marks of the keys that have had records, which tell nearly every other key apart without a look into a large map. */
class Marks {
  #marks = new Uint8Array(0)

  add(key: string): void {
    if (this.#marks.length === 0) this.#marks = new Uint8Array(2 ** 17)
    this.#marks[hashOf(key)] = 1
  }

  has(key: string): boolean {
    return this.#marks[hashOf(key)] === 1
  }
}

/** A number below 2^17, made of up to 8 characters of a key. */
function hashOf(key: string): number {
  const step = 1 + (key.length >> 3)
  let hash = key.length
  for (let i = 0; i < key.length; i += step) hash = Math.imul(hash ^ key.charCodeAt(i), 0x5bd1e995)
  return hash >>> 15
}

/** What is known of one key, in one object: calls look it up among ten thousand. */
class KnownKey {
  readonly records: { [kind in RecordKind]?: KeyRecord | undefined } = {}
  /** The end of its override; 0 without one. */
  until = 0
  blockedUntil = 0
  isExempt = false
  notedAt = -Infinity
  #of: PolicySet | undefined
  #made: PolicySet | undefined

  /** What the override makes of the set of a call. The latest is kept. */
  setFor(set: PolicySet): PolicySet {
    if (this.#of !== set) {
      this.#made = overridden(set, this.records.override!.content)
      this.#of = set
    }
    return this.#made!
  }

  change(kind: RecordKind, record: KeyRecord | undefined): void {
    const { records } = this
    records[kind] = record
    this.until = records.override?.until ?? 0
    this.isExempt = records.override?.content.exempt === true
    this.blockedUntil = records.block?.until ?? 0
    this.#of = undefined
    if (kind === 'override') this.notedAt = -Infinity
  }
}

/** Sets that overrides have made of a set, by their numbers. Each is held by the records that have made it. */
const MADE = new WeakMap<PolicySet, WeakValues<PolicySet>>()

/** Returns what an override makes of the set of a call: the same set where it is of other shapes, or the numbers would not work. */
function overridden(set: PolicySet, content: RecordContent): PolicySet {
  const made = MADE.get(set) ?? new WeakValues<PolicySet>()
  MADE.set(set, made)
  const rule = 'override' as const
  if (content.exempt) {
    const keyspace = new ExemptKeyspace(set.keyspace, set.sets.store)
    return made.get('exempt', () => ({ ...set, policies: [], given: [], keyspace, rule, exempt: true }))
  }
  try {
    const list = overriddenPolicies(set, content)
    const id = list.map(({ limit, capacity }) => `${limit}/${capacity}`).join()
    return list === set.given ? set : made.get(id, () => ({ ...set.sets.get(list), rule }))
  } catch {
    return set
  }
}

/**
 * The policies that an override makes of those of a set; the same list where it is of other shapes.
 * @throws {PolicyError} for numbers that the algorithms cannot count exactly.
 */
export function overriddenPolicies(
  set: PolicySet,
  { factor, limits, shapes }: RecordContent,
): readonly Policy[] {
  const { given } = set
  if (factor !== undefined) {
    const part = (units: number): number => Math.max(1, Math.floor(units * factor))
    return given.map((policy) => {
      const { limit, capacity } = policy
      return limit === 0 ? policy : policy.with({ limit: part(limit), capacity: part(capacity) })
    })
  }
  if (shapes !== set.shapes || !limits) return given
  return given.map((policy, i) => {
    const numbers = limits[i]
    if (typeof numbers !== 'number')
      return numbers ? policy.with({ limit: numbers[0], capacity: numbers[1] }) : policy
    const follows = policy.isCapacityLimit && numbers > 0
    return policy.with({ limit: numbers, ...(follows && { capacity: numbers }) })
  })
}

/** The records of one store in this process, whichever of its limiters ask. */
export class KnownRecords {
  /** Whether calls need not wait for the first read. */
  isRead = false
  /** Ids of records that have decided calls, which the next read reports. */
  readonly applied = new Set<string>()
  readonly #records: Records
  readonly #byLimiter = new Map<string, LimiterRecords>()
  readonly #byId = new Map<string, KeyRecord>()
  #version = 0
  /** By how much the store's clock is ahead of this process's, in microseconds. */
  #ahead = 0
  /** The first end of a record. */
  #nextEnd = Infinity
  #asked = 0
  /** Open limiters of the store. */
  #limiters = 0
  /** The latest of the operations whose changes were taken. */
  #taken = 0
  /** When the latest operation that has no answer was sent. */
  #waitsSince = -Infinity
  #isTicking = false
  #unread: Promise<void> | undefined

  /** The records of `store`, which has some. Those of one in this process come from here, so nothing reads them. */
  private constructor(private readonly store: Store) {
    this.#records = store.records!()
    this.isRead = store.local === true
  }

  /** The records of a store, shared by all of its limiters in this process; undefined where it keeps none. */
  static of(store: Store): KnownRecords | undefined {
    const all = inCommon('known-records', () => new WeakMap<Store, KnownRecords>())
    if (store.records && !all.has(store)) all.set(store, new KnownRecords(store))
    return all.get(store)
  }

  /** The records of the limiters of one name, for a limiter that calls `left` when it closes. */
  enter(limiter: string): LimiterRecords {
    this.#limiters++
    return this.#recordsOf(limiter)
  }

  /** Notes that a limiter has closed. After the last one nothing is read, and a further one begins anew. */
  left(): void {
    if (--this.#limiters > 0 || this.store.local) return
    ;[this.isRead, this.#unread] = [false, undefined]
    for (const records of this.#byLimiter.values()) {
      records.byKey ??= new Map()
      records.isUnread = true
    }
  }

  #recordsOf(limiter: string): LimiterRecords {
    const records = this.#byLimiter.get(limiter) ?? new LimiterRecords(this)
    this.#byLimiter.set(limiter, records)
    return records
  }

  /** The time on the store's clock, as far as this process knows it, in microseconds. */
  now(): number {
    return this.store.now() + this.#ahead
  }

  /**
   * Ends with the first read, which begins now unless it has; no later than the store's `startTimeout`, and as soon as the store is
   * known not to be connected. Undefined once it has ended.
   */
  unread(): Promise<void> | undefined {
    if (this.isRead || this.#unread) return this.isRead ? undefined : this.#unread
    if (!this.#isTicking) this.#schedule()
    const read = this.#read()
    if (isPromise(read)) this.#unread = this.#firstOf(Promise.resolve(read)).then(() => this.#begin())
    else this.#begin()
    return this.#unread
  }

  /** From here on calls go by what is known. */
  #begin(): void {
    this.isRead = true
    for (const records of this.#byLimiter.values()) {
      records.isUnread = false
      if (records.byKey?.size === 0) records.byKey = undefined
    }
  }

  /** Writes a record, or removes it without `content`. Returns false, with nothing written, where its limiter has 10,000 of the kind. */
  async write(
    of: Pick<KeyRecord, 'kind' | 'limiter' | 'stored'>,
    { content, ...end }: Written,
  ): Promise<boolean> {
    const id = recordId(of.kind, of.limiter, of.stored)
    const text = content ? JSON.stringify(content) : ''
    const { until = 0, life = 0 } = end
    if (this.store.local) this.#end()
    this.unread()?.catch(() => {})
    const record = { id, text, until, life, most: MOST_RECORDS }
    return inTime(this.#receive(this.#records.write(record, this.#version)))
  }

  /** The records of a limiter as the store has them, without those that have ended. */
  async list(limiter: string): Promise<readonly KeyRecord[]> {
    const { records, now } = await inTime(this.#records.read(0, this.#reported()))
    const all = records.map(readRecord)
    return all
      .filter((record) => record !== undefined)
      .filter((each) => each.limiter === limiter && each.until > now)
  }

  /** Ends with the first read, with the failure of the store's start, or after `startTimeout`. */
  async #firstOf(read: Promise<unknown>): Promise<void> {
    const { store } = this
    const failed = Promise.resolve(store.start?.()).then(
      () => (store.trouble?.() ? undefined : read),
      () => {},
    )
    let timer: ReturnType<typeof setTimeout>
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, store.startTimeout ?? 1000)))
    await Promise.race([read, failed, timeout])
    clearTimeout(timer!)
  }

  /** Sets the timer of the next read, which keeps neither the process nor the store alive. */
  #schedule(): void {
    this.#isTicking = true
    const weak = heldWeakly(this)
    const next = (): void => {
      const known = weak.deref()
      if (known) known.#tick()
    }
    const timer = this.store.keepsTime ? setTimeout(next, READ_MS) : setTimer(next, READ_MS)
    timer.unref?.()
  }

  /** Reads once more, unless an earlier read still waits for its answer, for as long as the store is open. */
  #tick(): void {
    if (this.store.closed?.aborted || this.#limiters === 0) return void (this.#isTicking = false)
    this.#schedule()
    this.#end()
    if (nowMs() - this.#waitsSince > LOST_MS) Promise.resolve(this.#read()).catch(() => {})
  }

  /** Reads what has changed. A failure leaves what is known in force; the next read makes up for it. */
  #read(): MaybePromise<unknown> {
    try {
      const taken = this.#receive(this.#records.read(this.#version, this.#reported()))
      return isPromise(taken) ? taken.catch(() => {}) : taken
    } catch {
      return undefined // what is known stands, each record until its end
    }
  }

  /** Ids of records that have decided calls, which the store is to note. */
  #reported(): readonly string[] {
    const ids: string[] = []
    let size = 0
    for (const id of this.applied) {
      if ((size += id.length) > MOST_REPORTED) break
      this.applied.delete(id)
      ids.push(id)
    }
    return ids
  }

  /** Takes the changes that an operation returns, unless those of a later one came before. False if it returns none. */
  #receive(changes: MaybePromise<RecordChanges | undefined>): MaybePromise<boolean> {
    const nth = ++this.#asked
    const take = (found: RecordChanges | undefined): boolean => {
      if (found && nth > this.#taken) this.#take(found, nth)
      return found !== undefined
    }
    if (!isPromise(changes)) return take(changes)
    const sentAt = (this.#waitsSince = nowMs())
    const ended = (): void => void (this.#waitsSince === sentAt && (this.#waitsSince = -Infinity))
    changes.then(ended, ended)
    return changes.then(take)
  }

  /** Makes what is known of the changes of operation `nth`. The first are no changes to this process, so nothing hears of them. */
  #take({ version, now, areAll, records }: RecordChanges, nth: number): void {
    const isHeard = this.#taken > 0 || this.store.local === true
    this.#taken = nth
    this.#version = version
    if (!this.store.local) this.#ahead = now - this.store.now()
    const gone = new Set(areAll ? this.#byId.keys() : [])
    for (const stored of records) {
      gone.delete(stored.id)
      if (this.#byId.get(stored.id)?.version === stored.version) continue
      const record = readRecord(stored)
      if (!record || record.until <= now) this.#remove(stored.id, record ? 'ended' : 'removed')
      else this.#set(record, isHeard)
    }
    for (const id of gone) this.#remove(id, 'removed')
  }

  #set(record: KeyRecord, isHeard: boolean): void {
    const records = this.#recordsOf(record.limiter)
    records.change(record, record)
    this.#byId.set(record.id, record)
    this.#nextEnd = Math.min(this.#nextEnd, record.until)
    if (isHeard) report(records, 'set', record)
  }

  #remove(id: string, change: RecordChange): void {
    const record = this.#byId.get(id)
    if (!record) return
    const records = this.#recordsOf(record.limiter)
    records.change(record, undefined)
    this.#byId.delete(id)
    report(records, change, record)
  }

  /** Forgets the records that have ended. */
  #end(): void {
    const now = this.now()
    if (now < this.#nextEnd) return
    this.#nextEnd = Infinity
    for (const { id, until } of this.#byId.values()) {
      if (until <= now) this.#remove(id, 'ended')
      else this.#nextEnd = Math.min(this.#nextEnd, until)
    }
  }
}

/**
 * Rejects where the store does not answer an operator within some seconds. The timer keeps the process alive meanwhile, as the sockets of
 * some stores do not.
 */
async function inTime<T>(answer: MaybePromise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => {
    const error = new StoreError('STORE_TIMEOUT', `its records took more than ${ANSWER_MS} ms`)
    timer = setTimeout(() => reject(error), ANSWER_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer!)
  }
}

/** Calls listeners in the next microtask: they may call the limiter, which is in the middle of an operation. */
function report({ listeners }: LimiterRecords, change: RecordChange, record: KeyRecord): void {
  for (const listener of listeners) queueMicrotask(() => listener(change, record))
}

interface Written {
  /** Undefined: the record is removed. */
  readonly content?: RecordContent
  /** The end on the store's clock, or from now on; microseconds. */
  readonly until?: number
  readonly life?: number
}

/** Records of one kind of a limiter. */
export const MOST_RECORDS = 10_000
const READ_MS = 1000
const ANSWER_MS = 5000
/** Some clients never settle a call of a broken connection. */
const LOST_MS = 10_000
/** A record says to the minute when it last decided a call. */
const NOTED_US = 60_000_000
/** Characters of the ids that one read reports, of which a frame of a machine's processes takes as many in JSON. */
const MOST_REPORTED = 8192
