/**
 * Whether a value is a promise, of whatever library: it has a method `then`. Not by `instanceof Promise`: a program may replace the
 * global Promise, and async functions go on to return native ones.
 */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/**
 * Returns a function that runs tasks in the AsyncLocalStorage context of this call, each in a microtask. The answer to many calls
 * comes in the context of one of them; by this function it is reported to each call in its own.
 */
export function inThisContext(): (task: () => void) => void {
  const tasks: (() => void)[] = []
  let wake!: () => void
  /** Runs the tasks and waits for the next, all in the context of this call: a `then` runs in that in which it was made. */
  const runAndWait = (): void => {
    const woken = new Promise<void>((resolve) => (wake = resolve))
    woken.then(runAndWait).catch(() => {})
    for (const task of tasks.splice(0)) task()
  }
  runAndWait()
  return (task) => {
    tasks.push(task)
    wake()
  }
}
