/** The time in whole microseconds. It must not run back; if it does, time stands still until it has caught up. */
export type Clock = () => number

/** Wall time read once, plus the monotonic clock: a step of the wall clock cannot disturb it. */
export function systemClock(): Clock {
  const monotonic = performance // the global is a getter, and this is read on every call
  const startUs = (Date.now() - monotonic.now()) * 1000
  return () => Math.floor(startUs + monotonic.now() * 1000)
}

/** Microseconds as whole milliseconds, rounded up, at least 0. */
export function wholeMs(us: number): number {
  return Math.max(0, Math.ceil(us / 1000))
}
