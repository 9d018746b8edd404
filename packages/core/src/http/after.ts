import type { MaybePromise } from '../stores/store.js'

/**
 * Calls `use` with the value: at once where it is there, later where it is still coming. A request on which nothing
 * has to be waited for is passed on in the same tick, which a bare `await` would not do.
 */
export function after<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? Promise.resolve(value).then(use) : use(value)
}

/** Anything with a `then`: users' functions also return the promises of other libraries. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
