import { warnProcessOnce } from './process-warning.js'

/**
 * The time in microseconds, of which stores take the whole ones. It must not run back; if it does, time stands still until it has
 * caught up.
 */
export type Clock = () => number

/**
 * The time of a test in place of the system's: `installFakeClock` of @sluice/testing. All copies of this package in a process,
 * of whatever version, find it under one symbol, so its members stay as they are.
 */
interface TestTime {
  /** Milliseconds, on the scale of `performance.now()`. */
  now(): number
  setTimeout(task: () => void, ms: number): TimerHandle
  clearTimeout(timer: TimerHandle | undefined): void
}

/** A number outside of Node. */
export type TimerHandle = ReturnType<typeof setTimeout>

const TIME = ((globalThis as Record<symbol, unknown>)[Symbol.for('sluice.time')] ??= {}) as {
  test?: TestTime
}

/** Milliseconds of a clock that does not run back: `performance.now()`, or the time of a test. */
export function nowMs(): number {
  return (TIME.test ?? performance).now()
}

/** `setTimeout` on the clock of `nowMs`. */
export function setTimer(task: () => void, ms: number): TimerHandle {
  return (TIME.test ?? globalThis).setTimeout(task, ms)
}

/** Cancels a timer of `setTimer`. */
export function clearTimer(timer: TimerHandle | undefined): void {
  ;(TIME.test ?? globalThis).clearTimeout(timer)
}

/**
 * Makes a clock in microseconds: the wall time, read with the first use, plus the time that has passed since on the monotonic
 * clock, so that it does not jump when the wall clock is set. A test's fake clock moves it. Nothing is read before, because in
 * workerd the clocks of a module that is being loaded stand still, and the monotonic one is on another scale than in a request.
 */
export function systemClock(): Clock {
  const monotonic = performance // the global is a getter, and this is read on every call
  let startUs: number
  /**
   * Warns if a test has replaced `Date` or `performance` by fake timers, which do not move this clock. Returns for how many reads
   * this need not be checked again.
   */
  const checkForFakes = (): number => {
    startUs ??= (Date.now() - monotonic.now()) * 1000
    const isFaked = Date !== DATE || performance !== PERFORMANCE
    if (isFaked && monotonic === PERFORMANCE && !TIME.test) warnProcessOnce('CLOCK_FAKED', FAKED)
    return READS_BETWEEN_CHECKS
  }
  let readsUntilCheck = 0
  return () => {
    if (readsUntilCheck-- === 0) readsUntilCheck = checkForFakes()
    const source = TIME.test ?? monotonic
    return startUs + (areStopped ? readOnce(source) : source.now()) * 1000
  }
}

/** Returns the clock as one that `stopClocks` stops. */
export function stoppable(clock: Clock): Clock {
  const source = { now: clock }
  return () => (areStopped ? readOnce(source) : clock())
}

type TimeSource = Pick<TestTime, 'now'>

let areStopped = false
/** The source that was read last since the clocks were stopped, and what it said. */
let lastSource: TimeSource | undefined
let lastTime = 0

/**
 * Stops the clocks of the stores in this process until `startClocks`: one that is read several times in a row says the same each
 * time. All system clocks are one here.
 */
export function stopClocks(): void {
  areStopped = true
  lastSource = undefined
}

export function startClocks(): void {
  areStopped = false
}

/** Reads a source while the clocks are stopped. */
function readOnce(source: TimeSource): number {
  if (lastSource !== source) lastTime = source.now()
  lastSource = source
  return lastTime
}

/**
 * Makes a clock in whole microseconds for instants that are compared with those of another machine: the wall time, read with
 * the first use, plus the time that has passed since on the monotonic clock. A test's fake clock does not move it, so a test that
 * has installed one is warned once.
 */
export function machineClock(): Clock {
  const monotonic = performance
  let startUs: number
  return () => {
    if (TIME.test !== undefined) warnProcessOnce('CLOCK_NOT_FAKED', NOT_FAKED)
    startUs ??= (Date.now() - monotonic.now()) * 1000
    return Math.floor(startUs + monotonic.now() * 1000)
  }
}

const NOT_FAKED =
  'a fake clock is installed, and a store keeps the clock of its server (Redis, Postgres): its limits go by real time; for a ' +
  'test give limiters a memoryStore, or the store a clock: redisStore(client, { clock })'

/** Not at each read: the getter of the global `performance` takes a tenth of a decision. */
const READS_BETWEEN_CHECKS = 16

/** The clocks of the system. A step of the system's clock replaces neither; fake timers do. */
const DATE = Date
const PERFORMANCE = performance

/** Warns once that fake timers move the system's clocks and not limits. */
const FAKED = 'limits do not follow fake timers: use installFakeClock() of @sluice/testing'

/** Microseconds as whole milliseconds, rounded up, at least 0. */
export function wholeMs(us: number): number {
  return Math.max(0, Math.ceil(us / 1000))
}
