/**
 * Whether a value is a promise, of whatever library: it has a method `then`. Not by `instanceof Promise`: a program may replace the
 * global Promise, and async functions go on to return native ones.
 */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
