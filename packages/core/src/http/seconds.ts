/** Whole seconds, rounded up: a client that waits so long is never early. */
export function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
