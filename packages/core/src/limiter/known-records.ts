import type { MaybePromise, RecordChanges, Records, Store } from '../stores/store.js'
import { nowMs, setTimer } from '../values/clock.js'
import { sharedInProcess } from '../values/contract.js'
import { StoreError } from '../values/errors.js'
import { isPromise } from '../values/promises.js'
import { heldWeakly } from '../values/weak-values.js'
import { type KeyRecord, readRecord, type RecordContent, recordId, type RecordSubject } from './key-record.js'
import { overriddenSet } from './overridden-set.js'
import type { PolicySet } from './policy-set.js'
import { StoreClock } from './store-clock.js'

/*
 * The records of a store, as this process knows them. Each process reads what has changed once a second, whatever the number of
 * limiters, and keeps all of it, so a decision asks a map of its limiter, and not even that where the limiter has no overrides.
 */

/** What happened to a record: it was written, was removed, or came to its end. */
export type RecordChange = 'set' | 'removed' | 'ended'

export type RecordListener = (change: RecordChange, record: KeyRecord) => void

/** The records of the limiters of one name. */
export class LimiterRecords {
  /** The overrides in force, by key as stores keep it. */
  readonly #overrides = new Map<string, OverrideInForce>()
  /** Whether calls have to look for overrides of their keys, or to wait for the first read of records. */
  mayHaveOverrides: boolean
  readonly listeners = new Set<RecordListener>()
  /** A bit for each hash of a key that has had an override: a look into a large map costs half of a decision in memory. */
  #marks = new Int32Array(0)
  /** The end that these keys have in common, such as `:login` of callers under one action. Keys differ before it. */
  #ending = ''

  constructor(readonly known: KnownRecords | undefined) {
    this.mayHaveOverrides = known?.isRead === false
  }

  /**
   * The set by which a call on a key, as stores keep it, is decided: `set`, or what an override of the key makes of it, which is
   * noted to have decided a call (`isNoted`) unless the call only reads.
   */
  withOverride(set: PolicySet, stored: string, isNoted: boolean): PolicySet {
    return this.#isMarked(stored) ? (this.#overrides.get(stored)?.setFor(set, isNoted) ?? set) : set
  }

  /** Whether an override may concern calls on a key, or the first read of records all calls. */
  mayConcern(stored: string): boolean {
    return this.#isMarked(stored) || !this.known!.isRead
  }

  #isMarked(stored: string): boolean {
    const hash = hashOf(stored, this.#ending.length)
    return (this.#marks[hash >> 5]! & (1 << (hash & 31))) !== 0
  }

  /**
   * Notes that a record of a key was set or is gone. Only an override, other limits for the key, changes how calls are decided, so
   * only overrides are kept here. `look` then decides anew whether calls have to look for one.
   */
  change(change: RecordChange, record: KeyRecord): void {
    const { kind, stored } = record
    if (kind === 'override' && change === 'set') {
      this.#overrides.set(stored, new OverrideInForce(record, this.known!))
      this.#mark(stored)
    } else if (kind === 'override') this.#overrides.delete(stored)
    this.look()
  }

  /** Has calls look for overrides where there are any, or where the first read is to be waited for. */
  look(): void {
    this.mayHaveOverrides = !this.known!.isRead || this.#overrides.size > 0
  }

  /**
   * Marks a key with an override: sets the bit of its hash, so that calls on most other keys see at once that they have none. The
   * hash is made of the characters before the ending that all such keys have in common, which tells them apart. If the key does not
   * have that ending, the common one is shorter from now on, and all keys are marked anew.
   */
  #mark(stored: string): void {
    const isFirst = this.#marks.length === 0
    const ending = isFirst ? stored : endingOf(stored, this.#ending)
    const isAnew = isFirst || ending !== this.#ending
    if (isAnew) [this.#marks, this.#ending] = [new Int32Array(2 ** (HASH_BITS - 5)), ending]
    for (const key of isAnew ? this.#overrides.keys() : [stored]) {
      const hash = hashOf(key, ending.length)
      this.#marks[hash >> 5]! |= 1 << (hash & 31)
    }
  }

  /** Calls listeners in the next microtask: they may call the limiter, which is in the middle of an operation. */
  report(change: RecordChange, record: KeyRecord): void {
    for (const listener of this.listeners) queueMicrotask(() => listener(change, record))
  }
}

/** An override as calls on its key look it up among ten thousand: what they need is in one object. */
class OverrideInForce {
  readonly #until: number
  readonly #isExempt: boolean
  #notedAt = -Infinity
  #of: PolicySet | undefined
  #made: PolicySet | undefined

  /**
   * Describes an override of one key, other limits or an exemption from them, until an instant on the store's clock. `record` is what
   * the operator has set, and `known` are all records that this process knows.
   */
  constructor(
    readonly record: KeyRecord,
    readonly known: KnownRecords,
  ) {
    this.#until = record.until
    this.#isExempt = record.content.exempt === true
  }

  /**
   * Returns the set (policies and their state) by which a call is decided: what the override makes of the caller's `set`, the latest of
   * which is kept. It is `set` itself after the end of the override, and if the override exempts the key from limits but an
   * operator has blocked the key. With `isNoted`, the store is told by the next read that the override has decided a call.
   */
  setFor(set: PolicySet, isNoted: boolean): PolicySet {
    const now = this.known.now()
    const isBeaten = this.#isExempt && this.known.get({ ...this.record, kind: 'block' }) !== undefined
    if (this.#until <= now || isBeaten) return set
    if (this.#of !== set) [this.#of, this.#made] = [set, overriddenSet(set, this.record.content)]
    if (isNoted && this.#made !== set && now - this.#notedAt >= NOTED_US) {
      this.#notedAt = now
      this.known.note(this.record.id)
    }
    return this.#made!
  }
}

/**
 * Returns a hash of HASH_BITS bits of a key: of its length, and of the 8 characters before its last `ending` characters, which all
 * keys in question have in common.
 */
function hashOf(key: string, ending: number): number {
  const end = key.length - ending
  let hash = key.length
  for (let i = Math.max(0, end - 8); i < end; i++) hash = (31 * hash + key.charCodeAt(i)) | 0
  return Math.imul(hash, 0x9e3779b1) >>> (32 - HASH_BITS)
}

/** Returns the longest text with which both texts end. */
function endingOf(one: string, other: string): string {
  let length = 0
  while (length < other.length && one.at(-1 - length) === other.at(-1 - length)) length++
  return other.slice(other.length - length)
}

/** The records of one store in this process, whichever of its limiters ask. */
export class KnownRecords {
  /** Whether calls need not wait for the first read. */
  isRead: boolean
  readonly #records: Records
  readonly #byId = new Map<string, KeyRecord>()
  readonly #byLimiter = new Map<string, LimiterRecords>()
  /** Ids of records that have decided calls or have ended, which the next read reports. */
  readonly #toReport = new Set<string>()
  /** Those that the latest read reports, until it has its answer. */
  #sent: readonly string[] = []
  /** Records that have ended on this process's clock, and perhaps not on the store's, until the next answer shows it. */
  readonly #ended = new Map<string, KeyRecord>()
  /** Open limiters of the store. */
  #limiters = 0
  #version = 0
  readonly #clock = new StoreClock(REMEMBERED_US)
  /** The microseconds by which the store's clock is ahead of this process's. */
  #storeIsAheadBy = 0
  /** The first end of a record. */
  #nextEnd = Infinity
  #asked = 0
  /** The latest of the operations whose changes were taken. */
  #taken = 0
  /** When the read was sent that has no answer yet. */
  #readAt = -Infinity
  #isTicking = false
  #unread: Promise<void> | undefined

  /**
   * Knows no records of `store` yet. A record is what an operator has set for one key: an override, a block or a hold. `isRead` says
   * that the records were read once: calls wait for that, but not if the store is in this process, as all of its writes are known.
   */
  private constructor(private readonly store: Store) {
    this.#records = store.records!()
    this.isRead = store.local === true
  }

  /** The records of a store, shared by all of its limiters in this process; undefined where it keeps none. */
  static of(store: Store): KnownRecords | undefined {
    const all = sharedInProcess('known-records', () => new WeakMap<Store, KnownRecords>())
    if (store.records && !all.has(store)) all.set(store, new KnownRecords(store))
    return all.get(store)
  }

  /**
   * Returns what is known of the keys of all limiters of one name, for one more limiter, which calls `leave` when it closes. While
   * there are records and limiters, the store is read every second.
   */
  enter(limiter: string): LimiterRecords {
    this.#limiters++
    if (this.isRead && this.#byId.size > 0 && !this.#isTicking) this.#schedule()
    return this.#recordsOf(limiter)
  }

  /**
   * Notes that a limiter has closed. After the last one the store is read no more, so what is known grows old: calls of a limiter that
   * is opened later wait for a first read again. A store in this process has no other writers, so there all stays known.
   */
  leave(): void {
    if (--this.#limiters > 0 || this.store.local) return
    ;[this.isRead, this.#unread] = [false, undefined]
    for (const records of this.#byLimiter.values()) records.look()
  }

  /** What is known of the keys of the limiters of one name; empty at first. */
  #recordsOf(limiter: string): LimiterRecords {
    const records = this.#byLimiter.get(limiter) ?? new LimiterRecords(this)
    this.#byLimiter.set(limiter, records)
    return records
  }

  /** The time on the store's clock, as far as this process knows it, in microseconds. */
  now(): number {
    return this.store.now() + this.#storeIsAheadBy
  }

  /** A record that is in force. */
  get(subject: RecordSubject): KeyRecord | undefined {
    const record = this.#byId.get(recordId(subject))
    return record && record.until > this.now() ? record : undefined
  }

  /** Notes that a record has decided a call; the next read reports that to the store. */
  note(id: string): void {
    this.#toReport.add(id)
  }

  /**
   * Returns a promise that resolves when the records were read for the first time; undefined once they were. The read begins now,
   * unless it has begun. The promise also resolves, with no records known, after the store's `startTimeout` and as soon as the store
   * is known not to be connected. From then on calls are decided by the records that are known (`#begin`).
   */
  untilFirstRead(): Promise<void> | undefined {
    if (this.isRead || this.#unread) return this.isRead ? undefined : this.#unread
    if (!this.#isTicking) this.#schedule()
    const read = this.#read()
    if (!isPromise(read)) return this.#begin()
    const { store } = this
    const ended = Promise.resolve(store.start?.()).then(() => (store.trouble?.() ? undefined : read))
    const inTime = withTimeout(store.startTimeout ?? 1000, ended).catch(() => {})
    return (this.#unread = inTime.then(() => this.#begin()))
  }

  /** Ends the wait for the first read: from now on calls are decided by the records that are known. */
  #begin(): undefined {
    this.isRead = true
    for (const records of this.#byLimiter.values()) records.look()
  }

  /**
   * Writes the record of a key that ends at the instant `until`, or after `life` microseconds; without `content` removes it. Returns
   * the version of this write; undefined, with nothing written, if the limiter has 10,000 records of this kind. Before that, records
   * that have ended are reported to the store until it has dropped them, and the write is tried once more.
   */
  async write(
    subject: RecordSubject,
    content?: RecordContent,
    { until = 0, life = 0 } = {},
  ): Promise<number | undefined> {
    const text = content ? JSON.stringify(content) : ''
    const record = { id: recordId(subject), text, until, life, most: MOST_RECORDS }
    const write = async (): Promise<number | undefined> => {
      const changes = this.#receive(this.store.now(), this.#records.write(record, this.#version))
      return (await withTimeout(ANSWER_MS, changes))?.written
    }
    if (!this.#isTicking) this.#schedule()
    this.untilFirstRead()?.catch(() => {})
    const written = await write()
    if (written !== undefined) return written
    this.#forgetEnded()
    // Each read has the store drop some of those that have ended.
    for (let left = Infinity; this.#toReport.size < left;) {
      left = this.#toReport.size
      await this.update()
    }
    return write()
  }

  /**
   * Reads once more: what was written before is known then.
   * @throws {StoreError} if the read fails.
   */
  async update(): Promise<void> {
    await withTimeout(ANSWER_MS, this.#receive(this.store.now(), this.#changes(this.#version)))
  }

  /** The records of a limiter as the store has them, without those that have ended. */
  async list(limiter: string): Promise<readonly KeyRecord[]> {
    const { records, now } = await withTimeout(LIST_MS, this.#changes(0))
    return records
      .flatMap((each) => readRecord(each) ?? [])
      .filter((each) => each.limiter === limiter && each.until > now)
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

  /**
   * Runs every second: forgets the records that have ended, sets the timer again, and reads the changes from the store, unless an
   * earlier read still waits for its answer. Ends (`#isTicking` is false) if the store or all limiters are closed, or if a store in
   * this process has no records.
   */
  #tick(): void {
    const { closed, local } = this.store
    if (closed?.aborted || this.#limiters === 0 || (local && this.#byId.size === 0))
      return void (this.#isTicking = false)
    try {
      this.#forgetEnded()
    } catch (error) {
      // A store without `closed` is closed: its clock says so.
      if ((error as Partial<StoreError>).code === 'CLOSED') return void (this.#isTicking = false)
    }
    this.#schedule()
    if (nowMs() - this.#readAt > LOST_MS) void this.#read()
  }

  /** Reads the records that have changed. If that fails, the known ones stay in force, and the next read makes up for it. */
  #read(): MaybePromise<unknown> {
    try {
      const taken = this.#receive(this.store.now(), this.#changes(this.#version))
      if (!isPromise(taken)) return taken
      const sentAt = (this.#readAt = nowMs())
      const ended = (): void => void (this.#readAt === sentAt && (this.#readAt = -Infinity))
      return taken.then(ended, ended)
    } catch {
      return undefined
    }
  }

  /**
   * Asks the store for the changes since a version. Reports with it the ids of records that have decided calls or have ended, as many
   * as fit into one call (MOST_REPORTED characters). Those of a read that got no answer (`#sent`) are reported once more.
   */
  #changes(since: number): MaybePromise<RecordChanges> {
    for (const id of this.#sent) this.#toReport.add(id)
    const ids: string[] = []
    let size = 0
    for (const id of this.#toReport) {
      if ((size += id.length) > MOST_REPORTED) break
      this.#toReport.delete(id)
      ids.push(id)
    }
    this.#sent = ids
    const answered = (changes: RecordChanges): RecordChanges => {
      if (this.#sent === ids) this.#sent = []
      return changes
    }
    const changes = this.#records.read(since, ids)
    return isPromise(changes) ? changes.then(answered) : answered(changes)
  }

  /**
   * Applies the `changes` with which the store answers a read or a write, and returns them. They are not applied if a later call was
   * answered before, as they are out of date then. `sent` is when the call was sent, in microseconds of this process.
   */
  #receive<C extends RecordChanges | undefined>(sent: number, changes: MaybePromise<C>): MaybePromise<C> {
    const nth = ++this.#asked
    const take = (found: C): C => {
      if (found && nth > this.#taken) this.#takeChanges(found, nth, sent)
      return found
    }
    return isPromise(changes) ? changes.then(take) : take(changes)
  }

  /**
   * Applies what the store has answered to the call number `nth`: keeps records that are new or changed, and forgets those that are
   * removed or have ended; with `areAll`, also those that are not listed. Learns how far the store's clock (`now`) is ahead. Records
   * that were forgotten as ended are in force again if that clock was set back. Listeners hear of no change with the first answer.
   */
  #takeChanges({ version, now, areAll, records }: RecordChanges, nth: number, sent: number): void {
    const isHeard = this.#taken > 0 || this.store.local === true
    this.#taken = nth
    this.#version = version
    if (!this.store.local) this.#storeIsAheadBy = -this.#clock.toLocal(0, now, sent, this.store.now())
    for (const record of this.#ended.values()) if (record.until > now) this.#set(record, isHeard)
    this.#ended.clear()
    const gone = new Set(areAll ? this.#byId.keys() : [])
    for (const stored of records) {
      gone.delete(stored.id)
      if (this.#byId.get(stored.id)?.version === stored.version) continue
      const record = readRecord(stored)
      if (!record || record.until <= now) {
        this.#remove(stored.id, record ? 'ended' : 'removed')
        continue
      }
      this.#set(record, isHeard)
    }
    for (const id of gone) this.#remove(id, 'removed')
  }

  /** Keeps a record, and reports it to its limiter and, if `isHeard`, to listeners. */
  #set(record: KeyRecord, isHeard: boolean): void {
    this.#byId.set(record.id, record)
    this.#nextEnd = Math.min(this.#nextEnd, record.until)
    const ofLimiter = this.#recordsOf(record.limiter)
    ofLimiter.change('set', record)
    if (isHeard) ofLimiter.report('set', record)
  }

  /** Forgets a record, and reports to its limiter and listeners why. With the next read the store drops one that has ended. */
  #remove(id: string, change: RecordChange): void {
    if (change === 'ended') this.#toReport.add(id)
    const record = this.#byId.get(id)
    if (!record) return
    this.#byId.delete(id)
    const ofLimiter = this.#recordsOf(record.limiter)
    ofLimiter.change(change, record)
    ofLimiter.report(change, record)
  }

  /**
   * Forgets the records that have ended, which are looked for only once `#nextEnd`, the first end of any, has come. They are kept in
   * `#ended` until the next answer of the store, as its clock may say that they last.
   */
  #forgetEnded(): void {
    const now = this.now()
    if (now < this.#nextEnd) return
    this.#nextEnd = Infinity
    for (const record of this.#byId.values()) {
      const { id, until } = record
      if (until > now) this.#nextEnd = Math.min(this.#nextEnd, until)
      else {
        this.#ended.set(id, record)
        this.#remove(id, 'ended')
      }
    }
  }
}

/**
 * Waits for an answer of the store, and rejects with STORE_TIMEOUT after `ms`. The timer keeps the process alive meanwhile, as the
 * sockets of some stores do not.
 */
async function withTimeout<T>(ms: number, answer: MaybePromise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => {
    const error = new StoreError('STORE_TIMEOUT', `its records took more than ${ms} ms`)
    timer = setTimeout(() => reject(error), ms)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer!)
  }
}

/** With ten thousand overrides, 4 of 100 other keys share a mark; the marks take 32 kB. */
const HASH_BITS = 18
/** A record says to the minute when it last decided a call. */
const NOTED_US = 60_000_000
/** Records of one kind of a limiter. */
export const MOST_RECORDS = 10_000
const READ_MS = 1000
const ANSWER_MS = 5000
/** A list may come in many pages. */
const LIST_MS = 60_000
/** Clocks drift apart by some milliseconds in two minutes. */
const REMEMBERED_US = 60_000_000
/** Some clients never settle a call of a broken connection. */
const LOST_MS = 10_000
/** Characters of the ids that one read reports, of which a frame of a machine's processes takes as many in JSON. */
const MOST_REPORTED = 8192
