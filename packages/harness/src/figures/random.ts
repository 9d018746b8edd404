/**
 * A function that returns random numbers from 0 up to 1, the same ones on every run for the same seed: mulberry32, which mixes the bits
 * of a counter by shifts and multiplications.
 */
export function randomFrom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
