/** How a promise has settled so far. */
export function outcome<T>(promise: Promise<T>): { readonly value?: T; readonly error?: any } {
  const seen: { value?: T; error?: unknown } = {}
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  )
  return seen
}
