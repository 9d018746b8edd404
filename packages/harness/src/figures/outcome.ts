/** An object that shows how a promise has settled: empty at first, it gets `value` or `error` when that happens. */
export function outcome<T>(promise: Promise<T>): { readonly value?: T; readonly error?: any } {
  const seen: { value?: T; error?: unknown } = {}
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  )
  return seen
}
