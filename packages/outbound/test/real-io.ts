/*
 * Fake time beside real sockets: timers and clocks are Jest's, what the network does is not. So a test can say exactly
 * how long a call waited, however busy the machine is.
 */

export function startFakeTime(): void {
  jest.useFakeTimers({
    doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    now: Date.UTC(2026, 0, 1),
  })
}

/** Lets time pass, and the network work, until the promise settles. */
export async function whilePassing<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false
  const settled = (): void => void (isSettled = true)
  promise.then(settled, settled)
  while (!isSettled) {
    await jest.advanceTimersByTimeAsync(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return promise
}
