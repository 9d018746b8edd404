import { StoreError } from '../values/errors.js'
import { nowMs, setTimer } from '../values/clock.js'

/**
 * Ends calls that take longer than `ms` milliseconds. One timer serves all calls, in the order in which their deadlines end:
 * nearly always that in which they began.
 *
 * A deadline measures the store and not this process. Everything that has arrived is read before a call is ended. A call made in
 * a turn of the event loop that blocked the process begins at the end of that turn, because calls that fill no batch are written
 * only then. While calls queue here and the store answers others, only the time in which the event loop was idle counts.
 */
export class Deadline {
  /** A linked list, because a Set of entries that come and go so fast costs more than the waiting. */
  #first: DeadlineEntry | undefined
  #last: DeadlineEntry | undefined
  /** Kept armed while idle, because creating a timer per call costs more; unref'd then. */
  #timer: Timer | undefined
  /** When the timer was set, when it is due, and the idle time and the traffic of the process when it was set. */
  #setAt = 0
  #dueAt = 0
  #idleMsWhenSet: number | undefined
  #answeredWhenSet = 0
  #wereQueuedWhenSet = false
  /** Milliseconds that no deadline counts. The time without them is counted time, in which deadlines end. */
  #uncountedMs = 0
  /** The instant of counted time up to which deadlines are over. */
  #overUntil = -Infinity
  #closed = false

  /**
   * A deadline of `ms` milliseconds for each call. `traffic` has the number of the store's answers so far, also to other
   * limiters, and of calls that wait in this process; by both it is known whether the store or this process is slow.
   */
  constructor(
    readonly ms: number,
    readonly traffic: Traffic = { answered: 0, waiting: 0 },
  ) {}

  /**
   * Begins the deadline of a call, whose time counts from `entry.since`, an instant at or before `now`, in milliseconds. Puts the
   * call into the linked list, which is in the order in which deadlines end; nearly every call belongs at its end. `endsAt` is in
   * counted time: `#uncountedMs`, the time so far in which this process was slow and not the store, is subtracted. One timer serves
   * the list. It is set if there is none; one that runs on from earlier calls is to keep the process alive again (`ref`).
   */
  begin(entry: DeadlineEntry, now = entry.since): void {
    entry.endsAt = entry.since + this.ms - this.#uncountedMs
    let before = this.#last
    while (before && before.endsAt > entry.endsAt) before = before.before
    const after = before ? before.after : this.#first
    entry.before = before
    entry.after = after
    if (before) before.after = entry
    else this.#first = entry
    if (after) after.before = entry
    else this.#last = entry
    if (this.#timer === undefined) this.#scheduleCheck(this.ms, now)
    else if (!entry.before && !this.#closed) this.#timer.ref?.()
  }

  /** Removes a call that has ended from the list. If no call is left, the timer no longer keeps the process alive. */
  end(entry: DeadlineEntry): void {
    this.#remove(entry)
    if (!this.#first) this.#timer?.unref?.()
  }

  /** Whether the time of a call is over, and it only remains to read what has arrived. */
  isOver(entry: DeadlineEntry): boolean {
    return entry.endsAt <= this.#overUntil
  }

  /** Removes a call from the list and ends it, with the error of a call that the store did not answer in time. */
  expire(entry: DeadlineEntry): void {
    this.end(entry)
    entry.expire(this.#timeout())
  }

  /** Lets the process end though calls wait: from here on the timer keeps it alive no more. Deadlines are still kept. */
  close(): void {
    this.#closed = true
    this.#timer?.unref?.()
  }

  /**
   * Removes a call from the linked list of calls that wait, from `#first` to `#last`, and links its neighbours; does nothing if it is
   * not in the list.
   */
  #remove(entry: DeadlineEntry): void {
    if (!entry.before && this.#first !== entry) return // it was removed before
    if (entry.before) entry.before.after = entry.after
    else this.#first = entry.after
    if (entry.after) entry.after.before = entry.before
    else this.#last = entry.before
    // An entry that was removed must not keep its neighbours in memory.
    entry.before = entry.after = undefined
  }

  /**
   * Sets the timer to check the deadlines in `ms` milliseconds, or in 10 if that is longer, so that each check judges a short
   * span of time. Notes how things stand when it is set, by which the check tells a slow store from a busy process.
   */
  #scheduleCheck(ms: number, now: number): void {
    const delay = Math.min(LONGEST_CHECK_MS, Math.ceil(ms))
    this.#setAt = now
    this.#dueAt = now + delay
    this.#answeredWhenSet = this.traffic.answered
    this.#wereQueuedWhenSet = this.traffic.waiting > 0
    this.#idleMsWhenSet = idleMs()
    this.#timer = setTimer(() => this.#expireDueCalls(), delay)
    if (this.#closed) this.#timer?.unref?.()
  }

  /**
   * Runs when the timer fires. Deadlines are in counted time: that of the clock less the time in which this process was slow and not
   * the store (`#uncountedMs`). If the first call in the list still has time, sets the timer anew. Otherwise the calls whose deadlines
   * are over by now (`#overUntil`) expire: at once if the timer was on time. If it was late, the process was blocked, and answers that
   * have arrived meanwhile are read first. Without calls the timer is not set again.
   */
  #expireDueCalls(): void {
    const now = nowMs()
    this.#postponeByBusyTime(now)
    if (!this.#first) {
      this.#timer = undefined
      return
    }
    const countedNow = now - this.#uncountedMs
    const left = this.#first.endsAt - countedNow
    if (left > 0) this.#scheduleCheck(left, now)
    else {
      this.#overUntil = countedNow
      const isOnTime = now - this.#dueAt < ON_TIME_MS
      // After an event-loop stall, timers fire before pending socket data is read.
      if (isOnTime) this.#expireOver()
      else afterReading(() => this.#expireOver())
    }
  }

  /**
   * Postpones deadlines by time in which this process was slow and not the store; `now` in milliseconds. Where calls are queued in
   * this process, or were when the timer was set, time in which the process was busy does not count. If the store answered calls
   * meanwhile, the queued ones waited for this process, so none of that time counts. If it answered none, it may be slow itself, so
   * at most the time by which the timer is late is left out. A late timer means that the process was blocked: calls that were made
   * since it was set may not have been sent before, so they have their full time from now on.
   */
  #postponeByBusyTime(now: number): void {
    const { answered, waiting } = this.traffic
    const lateMs = now - this.#dueAt
    const isLate = lateMs >= LATE_MS
    const areQueued = waiting > 0 || this.#wereQueuedWhenSet
    const hasAnswered = answered !== this.#answeredWhenSet
    if (areQueued && hasAnswered) this.#uncountedMs += this.#busyMs(now)
    else if (areQueued && isLate) this.#uncountedMs += Math.min(this.#busyMs(now), lateMs)
    if (!isLate) return
    for (let late = this.#last; late && late.since >= this.#setAt; late = late.before) {
      late.endsAt = now + this.ms - this.#uncountedMs
    }
  }

  /** Returns the milliseconds since the timer was set in which this process was busy; 0 if the runtime does not measure idle time. */
  #busyMs(now: number): number {
    const idle = idleMs()
    if (idle === undefined || this.#idleMsWhenSet === undefined) return 0
    return Math.max(0, now - this.#setAt - (idle - this.#idleMsWhenSet))
  }

  /**
   * Expires the calls whose time is over, which come first in the list, and sets the timer for the next one, if there is any. The end
   * of a call (`endsAt`) is in counted time: `#uncountedMs` are the milliseconds so far in which this process was slow and not the
   * store.
   */
  #expireOver(): void {
    for (let entry = this.#first; entry && this.isOver(entry); entry = this.#first) {
      this.#remove(entry)
      entry.expire(this.#timeout())
    }
    const now = nowMs()
    if (this.#first)
      this.#scheduleCheck(Math.max(LEAST_CHECK_MS, this.#first.endsAt - (now - this.#uncountedMs)), now)
    else this.#timer = undefined
  }

  #timeout(): StoreError {
    return new StoreError('STORE_TIMEOUT', `the store did not answer within ${this.ms} ms`)
  }
}

/** A call under a deadline. All fields but `since` are kept by the deadline. */
export interface DeadlineEntry {
  /** An instant of `nowMs`. */
  readonly since: number
  /** The instant of counted time at which the call's time is over. */
  endsAt: number
  /** Its neighbours in the list. */
  before: DeadlineEntry | undefined
  after: DeadlineEntry | undefined
  expire(error: StoreError): void
}

/** The calls between this process and a store. */
export interface Traffic {
  /** Calls that were answered so far, in time or not. */
  readonly answered: number
  /** Calls that wait in this process for room. */
  readonly waiting: number
}

/** A number outside of Node. */
type Timer = Partial<Pick<NodeJS.Timeout, 'ref' | 'unref'>>

/** The longest time between two checks, in milliseconds. */
const LONGEST_CHECK_MS = 10

/** How late a timer fires when the process itself was busy, in milliseconds. */
const LATE_MS = 5

/** A timer that fires less late than this, in milliseconds, was not kept back: nothing that has arrived is unread. */
const ON_TIME_MS = 1

/** The shortest time for which the timer is set again after calls have expired, in milliseconds. */
const LEAST_CHECK_MS = 1

/**
 * Runs a task after the event loop has read the data that has arrived, so that no call expires whose answer is only unread. In
 * Node, `setImmediate` runs its task after reading; a runtime without it gets a timer.
 */
function afterReading(task: () => void): void {
  if (typeof setImmediate === 'function') setImmediate(task)
  else setTimeout(task, 0)
}

/** Returns the milliseconds for which the event loop has been idle so far; undefined in a runtime that does not measure it. */
function idleMs(): number | undefined {
  const { idle, active } = performance.eventLoopUtilization?.() ?? { idle: 0, active: 0 }
  return idle + active > 0 ? idle : undefined
}
