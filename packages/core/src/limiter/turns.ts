import type { clearTimer, setTimer, TimerHandle } from '../values/clock.js'

/**
 * The calls of one queue that wait for instants of a clock, in the order of these. They share one timer, that of the next turn:
 * timers of their own would fire in another order after the process was busy, because Node keeps timers in lists by duration
 * and runs all that are due in one list before the next.
 */
export class Turns {
  /** The earliest first, and of equal ones the oldest. */
  readonly #waiting: WaitingTurn[] = []
  #timer: TimerHandle | undefined
  /** The instant that the timer is for. */
  #timerAt: number | undefined

  /**
   * Holds no waiting calls at first. `now` is the clock whose instants they wait for: it returns microseconds, and throws once
   * its store is closed. `timers` set and clear the one timer that all calls share: real ones, or those that follow a test's fake
   * clock.
   */
  constructor(
    private readonly now: () => number,
    private readonly timers: { set: typeof setTimer; clear: typeof clearTimer },
  ) {}

  /**
   * Adds a waiting call, and returns a function that removes it. It is woken when its instant has come, or at once if that has
   * passed, after all calls that were added before with an earlier or equal one. If the clock throws, all waiting calls fail.
   */
  add(waiter: WaitingTurn): () => void {
    this.#waiting.splice(this.#countUpTo(waiter.at), 0, waiter)
    this.#wake()
    return () => this.#remove(waiter)
  }

  /** Whether a call still waits though its instant has come at `now`, because the process was too busy to wake it. */
  isLate(now: number): boolean {
    const [first] = this.#waiting
    return first !== undefined && first.at <= now
  }

  /**
   * Removes a waiting call, without waking it; does nothing if it was woken before. If it was the first, the timer is set anew.
   */
  #remove(waiter: WaitingTurn): void {
    const place = this.#waiting.indexOf(waiter, this.#countUpTo(waiter.at - 1))
    if (place < 0) return
    this.#waiting.splice(place, 1)
    if (place === 0) this.#wake()
  }

  /**
   * Wakes the calls whose instant has come, the earliest first, and sets the timer for the next. Timers may fire early, so the
   * clock decides. If it throws, as the store is closed, all waiting calls fail with its error and no timer is set.
   */
  #wake(): void {
    try {
      const now = this.now()
      while (this.#waiting.length > 0 && this.#waiting[0]!.at <= now) this.#waiting.shift()!.wake()
      this.#setTimer(now)
    } catch (error) {
      for (const { fail } of this.#waiting.splice(0)) fail(error)
      this.#setTimer(0)
    }
  }

  /**
   * Sets the one timer for the first waiting call, `now` being microseconds, unless it is set for that instant already. Without
   * waiting calls there is no timer.
   */
  #setTimer(now: number): void {
    const at = this.#waiting[0]?.at
    if (at === this.#timerAt) return
    this.timers.clear(this.#timer)
    this.#timerAt = at
    if (at === undefined) return
    /** Runs when the timer fires: forgets it, so that `#wake` sets another, for the same instant if this one was early. */
    const fire = (): void => {
      this.#timerAt = undefined
      this.#wake()
    }
    this.#timer = this.timers.set(fire, Math.ceil((at - now) / 1000))
  }

  /** Returns how many calls wait for an instant up to `at`, by a binary search. A new call for `at` goes behind them. */
  #countUpTo(at: number): number {
    let [low, high] = [0, this.#waiting.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#waiting[middle]!.at <= at) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** `at` is in microseconds. */
interface WaitingTurn {
  readonly at: number
  readonly wake: () => void
  readonly fail: (error: unknown) => void
}
