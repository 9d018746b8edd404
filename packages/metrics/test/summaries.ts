import fc from 'fast-check'
import { SpaceSaving } from '../src/top-keys/space-saving.js'
import { type Summary, summaryOf } from '../src/top-keys/summary.js'

/** Streams in which a few keys are heavy: small numbers are keys, and a run repeats one. */
export const streams = fc
  .array(fc.tuple(fc.nat(40), fc.integer({ min: 1, max: 30 })), { maxLength: 80 })
  .map((runs) => runs.flatMap(([key, times]) => Array.from({ length: times }, () => `k${key}`)))
export const sizes = fc.integer({ min: 1, max: 12 })

export function truths(stream: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of stream) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

export function summarize(stream: readonly string[], size: number): Summary {
  const counts = new SpaceSaving(size)
  for (const key of stream) counts.add(key)
  return summaryOf(counts)
}

/** The two laws of a summary of `stream`. */
export function expectLaws({ keys, total, missed }: Summary, stream: readonly string[], size: number): void {
  const truth = truths(stream)
  expect(total).toBe(stream.length)
  expect(keys.length).toBeLessThanOrEqual(size)
  expect(missed).toBeLessThanOrEqual(stream.length / size)
  for (const { key, count, error } of keys) {
    expect(truth.get(key) ?? 0).toBeLessThanOrEqual(count)
    expect(truth.get(key) ?? 0).toBeGreaterThanOrEqual(count - error)
  }
  const listed = new Set(keys.map(({ key }) => key))
  for (const [key, count] of truth) if (count > stream.length / size) expect(listed).toContain(key)
}
