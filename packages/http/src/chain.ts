import type { MaybePromise } from '@sluice/core/store'

/**
 * Passes the value to `step`: in the same tick if it is available, otherwise when its promise resolves. A request that
 * waits for nothing is thus passed on in the same tick, which a plain `await` would not do.
 */
export function chain<T, R>(value: MaybePromise<T>, step: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? Promise.resolve(value).then(step) : step(value)
}

/** Recognises anything with a `then`, because callbacks may return the promises of other libraries. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
