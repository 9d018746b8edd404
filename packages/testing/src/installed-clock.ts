/*
 * A fake clock for limiters that are already made, or made by code under test. Every copy of @sluice/core in the process looks
 * for it under one symbol of the global object, so nothing is passed through the application. It moves limits alone: timers and
 * dates of the application, of the test runner and of the clients of Redis go on.
 */

/** The clock under the symbol that @sluice/core looks for. */
interface TestTime {
  now(): number
  setTimeout(task: () => void, ms: number): RealTimer | FakeTimer
  clearTimeout(timer: unknown): void
}

type RealTimer = ReturnType<typeof setTimeout>

/** A clock that all limiters of this process go by, made by `installFakeClock`. */
export interface InstalledClock {
  /**
   * Moves on by `ms` milliseconds and ends the waits that are over by then, one after the other. Resolves when what waited for
   * them has run.
   */
  pass(ms: number): Promise<void>
  /** Lets time run again, from where it stands. Waits that are left take the real time that they have left. */
  restore(): void
}

/**
 * Puts all limiters, semaphores and queues of this process on a clock that stands still until it is moved: whether they were made
 * before or after, by whichever copy of @sluice/core, with their waits and deadlines. Stores with a `clock` of their own keep it,
 * and `redisStore` that of Redis, which it warns of once. The clock goes on from that of an earlier test, as limits cannot go
 * back in time.
 * @throws {Error} if one is installed that was not restored.
 * @example
 * import { installFakeClock } from '@sluice/testing'
 * const clock = installFakeClock()
 * await clock.pass(60_000)
 * clock.restore()
 */
export function installFakeClock(): InstalledClock {
  const { test: before } = TIME
  if (before instanceof FakeTime && before.stands) {
    throw new Error('a fake clock is installed already: call restore() of it first')
  }
  const time = new FakeTime(before?.now() ?? performance.now())
  TIME.test = time
  return { pass: (ms) => time.pass(ms), restore: () => time.run() }
}

const TIME = ((globalThis as Record<symbol, unknown>)[Symbol.for('sluice.time')] ??= {}) as {
  test?: TestTime
}

/** Time that stands still, or runs behind or ahead of the system's once it was restored: limits cannot go back. */
class FakeTime implements TestTime {
  /** Whether time stands still: from the start until `run`. */
  stands = true
  /** The time in milliseconds while it stands; afterwards what is added to the system's. */
  #ms: number
  readonly #timers = new Set<FakeTimer>()

  constructor(ms: number) {
    this.#ms = ms
  }

  /**
   * The time in milliseconds. It stands still until `pass` moves it; once `run` was called it goes with the system's, at a fixed
   * distance.
   */
  now(): number {
    return this.stands ? this.#ms : this.#ms + performance.now()
  }

  /**
   * Sets a timer that runs `task` once `ms` milliseconds of this clock have passed; a real timer once time runs again. A fake
   * timer is kept in `#timers` until it runs or is cleared.
   */
  setTimeout(task: () => void, ms: number): RealTimer | FakeTimer {
    if (!this.stands) return setTimeout(task, ms)
    const timer = new FakeTimer(task, this.#ms + Math.max(0, ms))
    this.#timers.add(timer)
    return timer
  }

  /**
   * Clears a timer of this clock, or a real one. A fake timer has a real one in its place (`timer.real`) if time began to run
   * before it was due.
   */
  clearTimeout(timer: unknown): void {
    if (!(timer instanceof FakeTimer)) return clearTimeout(timer as RealTimer)
    this.#timers.delete(timer)
    clearTimeout(timer.real)
  }

  /**
   * Moves the time on by `ms` milliseconds. Timers that are due by then run one after the other, each with the clock at its
   * instant, also those that a task sets meanwhile. After each, what waited for it may run (`afterReadyTasks`). A task may call `run`: then
   * time no longer stands, and the rest is left to the real timers.
   */
  async pass(ms: number): Promise<void> {
    await afterReadyTasks() // what was called before has begun to wait
    const until = this.#ms + ms
    for (let next = this.#next(); this.stands && next && next.at <= until; next = this.#next()) {
      this.#timers.delete(next)
      this.#ms = Math.max(this.#ms, next.at)
      next.task()
      await afterReadyTasks()
    }
    if (this.stands) this.#ms = until
    await afterReadyTasks()
  }

  /**
   * Lets time run again from where it stands, once. Timers that are left become real ones, with the milliseconds that they have
   * left. `#ms` becomes the distance to the system's clock.
   */
  run(): void {
    if (!this.stands) return
    this.stands = false
    const left = [...this.#timers].map((timer) => [timer, timer.at - this.#ms] as const)
    this.#ms -= performance.now()
    this.#timers.clear()
    for (const [timer, ms] of left) timer.real = setTimeout(timer.task, ms)
  }

  /** The timer that is due first; undefined without any. */
  #next(): FakeTimer | undefined {
    let next: FakeTimer | undefined
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer
    return next
  }
}

class FakeTimer {
  real: RealTimer | undefined

  /** A timer that is due at the instant `at` of the fake time. */
  constructor(
    readonly task: () => void,
    readonly at: number,
  ) {}

  /** Does nothing, for code that expects a timer of Node: a fake one keeps no process alive. */
  ref(): this {
    return this
  }

  /** Does nothing, for code that expects a timer of Node. */
  unref(): this {
    return this
  }
}

const immediate = setImmediate // before a test runner replaces it

/** Resolves when everything that is ready to run has run. Fake timers of a test runner do not hold it up. */
function afterReadyTasks(): Promise<void> {
  return new Promise((resolve) => void immediate(resolve))
}
