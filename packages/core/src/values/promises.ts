/**
 * Whether a value is a promise, of whatever library: it has a method `then`. Not by `instanceof Promise`: a program may replace the
 * global Promise, and async functions go on to return native ones.
 */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/**
 * Returns a function that runs tasks in the AsyncLocalStorage context of this call, each in a microtask: a reaction of a promise runs
 * in the context in which it was made. So the answer to many calls, which comes in the context of one of them, is reported in that of each.
 */
export function inThisContext(): (task: () => void) => void {
  const tasks: (() => void)[] = []
  let wake!: () => void
  /** Waits for the next tasks, in this context, as it is called here and in reactions that were made here. */
  const wait = (): void => {
    const woken = new Promise<void>((resolve) => (wake = resolve))
    woken.then(wait).catch(() => {})
    for (const task of tasks.splice(0)) task()
  }
  wait()
  return (task) => {
    tasks.push(task)
    wake()
  }
}
