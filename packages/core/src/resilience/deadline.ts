import { StoreError } from '../values/errors.js'
import { LoopTime } from './loop-time.js'

/**
 * Gives up on answers that take longer than `ms` milliseconds. One timer serves all calls, as their deadlines end in
 * the order in which they began.
 *
 * A deadline measures the store and not this process. It is decided after everything that has arrived was read; a call
 * that was made in a turn of the event loop that held the process up begins at the end of that turn, as nothing is written
 * before; and while calls wait here for room and the store answers others, only the time counts in which this process had
 * nothing to do but to wait.
 */
export class Deadline {
  readonly ms: number
  readonly #traffic: Traffic
  readonly #loop = new LoopTime()
  /** A list, as a Set of what comes and goes so fast costs more than the waiting. */
  #first: Waiting | undefined
  #last: Waiting | undefined
  /** Left to run out while nobody waits, as making one for each call takes longer, but then it holds no process up. */
  #timer: Timer | undefined
  /** When the timer was set, when it is due, and how things stood when it was set. */
  #setAt = 0
  #dueAt = 0
  #answered = 0
  #wasCrowded = false
  /** Milliseconds that no deadline counts. */
  #uncounted = 0
  /** The instant, by what counts, up to which deadlines are over. */
  #over = -Infinity
  #closed = false

  constructor(ms: number, traffic: Traffic = NO_TRAFFIC) {
    this.ms = ms
    this.#traffic = traffic
  }

  /** Tells `waiting` when its time is over, unless it has ended before. */
  begin(waiting: Waiting): void {
    waiting.endsAt = waiting.since + this.ms - this.#uncounted
    waiting.before = this.#last
    if (this.#last) this.#last.after = waiting
    else this.#first = waiting
    this.#last = waiting
    if (this.#timer === undefined) this.#lookIn(this.ms, waiting.since)
    else if (!waiting.before && !this.#closed) this.#ref()
  }

  end(waiting: Waiting): void {
    this.#takeOut(waiting)
    if (!this.#first) this.#unref()
  }

  /** Whether the time of a call is over, and only what has arrived is read before that is decided. */
  isOver(waiting: Waiting): boolean {
    return waiting.endsAt <= this.#over
  }

  /** Ends what waits before its time is decided. */
  giveUp(waiting: Waiting): void {
    this.end(waiting)
    waiting.giveUp(this.#timeout())
  }

  /** From here on nobody who waits keeps the process alive. */
  close(): void {
    this.#closed = true
    this.#unref()
  }

  #takeOut(waiting: Waiting): void {
    if (!waiting.before && this.#first !== waiting) return // it has left before
    if (waiting.before) waiting.before.after = waiting.after
    else this.#first = waiting.after
    if (waiting.after) waiting.after.before = waiting.before
    else this.#last = waiting.before
    // What has left must not keep its neighbours in memory.
    waiting.before = waiting.after = undefined
  }

  #lookIn(ms: number, now: number): void {
    const delay = Math.min(TURN_MS, Math.ceil(ms))
    this.#setAt = now
    this.#dueAt = now + delay
    this.#answered = this.#traffic.answered
    this.#wasCrowded = this.#traffic.waiting > 0
    this.#loop.begin(now)
    this.#timer = setTimeout(() => this.#look(), delay)
    if (this.#closed) this.#unref()
  }

  #look(): void {
    const now = performance.now()
    this.#count(now)
    if (!this.#first) {
      this.#timer = undefined
      return
    }
    const left = this.#first.endsAt - (now - this.#uncounted)
    if (left > 0) this.#lookIn(left, now)
    else {
      this.#over = now - this.#uncounted
      // A process that was busy runs its timers before it reads.
      if (now - this.#dueAt < 1) this.#decide()
      else afterReading(() => this.#decide())
    }
  }

  /** Leaves out what this process took for itself since the timer was set. */
  #count(now: number): void {
    const { answered, waiting } = this.#traffic
    const isLate = now - this.#dueAt >= LATE_MS
    if (waiting > 0 || this.#wasCrowded) {
      if (answered !== this.#answered) this.#uncounted += this.#loop.busy(now)
      else if (isLate) this.#uncounted += Math.min(this.#loop.busy(now), now - this.#dueAt)
    }
    if (!isLate) return
    for (let late = this.#last; late && late.since >= this.#setAt; late = late.before) {
      late.endsAt = now + this.ms - this.#uncounted
    }
  }

  #decide(): void {
    for (let waiting = this.#first; waiting && this.isOver(waiting); waiting = this.#first) {
      this.#takeOut(waiting)
      waiting.giveUp(this.#timeout())
    }
    const now = performance.now()
    if (this.#first) this.#lookIn(Math.max(1, this.#first.endsAt - (now - this.#uncounted)), now)
    else this.#timer = undefined
  }

  #timeout(): StoreError {
    return new StoreError('STORE_TIMEOUT', `the store did not answer within ${this.ms} ms`)
  }

  #ref(): void {
    this.#timer?.ref?.()
  }

  #unref(): void {
    this.#timer?.unref?.()
  }
}

export interface Waiting {
  /** As `performance.now()` says it. */
  readonly since: number
  /** Kept by the deadline: the instant at which its time is over, by what counts. */
  endsAt: number
  /** Its neighbours, kept by the deadline. */
  before: Waiting | undefined
  after: Waiting | undefined
  giveUp(error: StoreError): void
}

/** What is between this process and a store. */
export interface Traffic {
  /** Calls that were answered so far, in time or not. */
  readonly answered: number
  /** Calls that wait in this process for room. */
  readonly waiting: number
}

const NO_TRAFFIC: Traffic = { answered: 0, waiting: 0 }

/** A number outside of Node. */
type Timer = Partial<Pick<NodeJS.Timeout, 'ref' | 'unref'>>

/** The longest between two looks at what this process took for itself, in milliseconds. */
const TURN_MS = 10

/** How late a timer comes when the process itself was busy, in milliseconds. */
const LATE_MS = 5

/** Runs a task once everything that has arrived is read. */
function afterReading(task: () => void): void {
  if (typeof setImmediate === 'function') setImmediate(task)
  else setTimeout(task, 0)
}
