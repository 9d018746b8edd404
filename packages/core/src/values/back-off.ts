/**
 * Returns the milliseconds to wait before what failed is tried again: `firstMs`, doubled `times` times, at most `longestMs`, and by chance
 * as little as half of that, which keeps the processes of a fleet from trying all at once.
 */
export function backOff(firstMs: number, times: number, longestMs: number): number {
  return Math.min(firstMs * 2 ** times, longestMs) * (0.5 + Math.random() / 2)
}
