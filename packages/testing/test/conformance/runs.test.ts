import { memoryStore } from '@sluice/core'
import { conformance, type ConformanceOptions } from '../../src/index.js'

const real = { describe, it, runs: process.env.CONFORMANCE_RUNS }
afterEach(() => {
  Object.assign(globalThis, { describe: real.describe, it: real.it })
  delete process.env.CONFORMANCE_RUNS
  if (real.runs !== undefined) process.env.CONFORMANCE_RUNS = real.runs
})

/** The stores that one test of the kit opens: one for each sequence or run. */
async function storesOf(test: string, options: ConformanceOptions, runs?: number): Promise<number> {
  const declared = new Map<string, () => unknown>()
  const inside = (_title: string, declare: () => void) => declare()
  const collect = (title: string, run: () => unknown) => declared.set(title, run)
  Object.assign(globalThis, { describe: inside, it: Object.assign(collect, { each: () => () => {} }) })
  delete process.env.CONFORMANCE_RUNS
  if (runs !== undefined) process.env.CONFORMANCE_RUNS = String(runs)
  let opened = 0
  conformance('memory', (clock) => (opened++, memoryStore({ clock })), options)
  await declared.get(test)!()
  return opened
}
const LAW = 'changes nothing when it denies'
const MODEL = 'for three policies' // a fifth of the sequences

it.each([
  [{ sequences: 500 }, undefined, 4, 100],
  [{ sequences: 500, lawRuns: 10 }, undefined, 10, 100],
  [{ sequences: 500, lawRuns: 10 }, 250, 5, 50],
  [{ lawRuns: 10 }, 500, 1, 100],
  [{}, 500, 4, 100],
])('with %j and CONFORMANCE_RUNS=%p a law is tried %i times, and the model %i times', async (...row) => {
  const [options, runs, laws, sequences] = row
  expect(await storesOf(LAW, options, runs)).toBe(laws)
  expect(await storesOf(MODEL, options, runs)).toBe(sequences)
})
