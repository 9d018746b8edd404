import { memoryStore } from '@sluice/core'
import type { ConformanceOptions } from '../../src/index.js'
import { type Environment, testsOf } from './tests-of.js'

/** The stores that one test of the kit opens: one for each sequence or run. */
async function storesOf(test: string, options: ConformanceOptions, runs?: number): Promise<number> {
  let opened = 0
  const environment = runs === undefined ? {} : { CONFORMANCE_RUNS: String(runs) }
  const tests = testsOf((clock) => (opened++, memoryStore({ clock })), options, environment)
  await tests.get(test)!()
  return opened
}
const LAW = 'gcra > changes nothing when it denies'
const MODEL = 'answers as the model does > for three policies' // a fifth of the sequences

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

it.each<[what: string, ConformanceOptions, Environment]>([
  [
    'CONFORMANCE_RUNS must be a whole number from 1 to 2147483647, got "10_000"',
    {},
    { CONFORMANCE_RUNS: '10_000' },
  ],
  ['got ""', {}, { CONFORMANCE_RUNS: '' }],
  ['got 0', {}, { CONFORMANCE_RUNS: '0' }],
  ['got -5', {}, { CONFORMANCE_RUNS: '-5' }],
  ['got "1e4"', {}, { CONFORMANCE_RUNS: '1e4' }],
  ['CONFORMANCE_SEED must be a whole number', {}, { CONFORMANCE_SEED: 'x' }],
  ['sequences must be a whole number from 1 to 2147483647, got 0', { sequences: 0 }, {}],
  ['sequences must be', { sequences: NaN }, {}],
  ['lawRuns must be', { lawRuns: 0.5 }, {}],
])('throws where nothing would be tried: %s', (message, options, environment) => {
  const declare = () => testsOf((clock) => memoryStore({ clock }), options, environment)
  expect(declare).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  expect(declare).toThrow(message)
})
