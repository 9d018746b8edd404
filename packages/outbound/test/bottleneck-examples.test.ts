import * as core from '@sluice/core'
import Bottleneck from 'bottleneck'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compileFunction } from 'node:vm'
import { createQueue } from '../src/index.js'

/** Runs the examples of docs/migrate/bottleneck.md with both libraries, and compares when calls began and what was seen. */
const page = readFileSync(join(__dirname, '../../../docs/migrate/bottleneck.md'), 'utf8')
const BLOCKS = /^### (.+?)$[\s\S]*?^```js bottleneck\n([\s\S]*?)^```$[\s\S]*?^```js sluice\n([\s\S]*?)^```$/gm
const examples = [...page.matchAll(BLOCKS)].map(
  ([, title, theirs, ours]) => [title!, theirs!, ours!] as const,
)

/** bottleneck takes a millisecond or two for each call of a burst, and `minTime: 333` is a little faster than 3 a second. */
const TOLERANCE_MS = 100

/** What the code of an example did within three minutes: names of calls with the instant at which they began, and values. */
async function run(code: string) {
  jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
  const start = performance.now()
  const calls: { readonly name: string; readonly at: number }[] = []
  const values: unknown[] = []
  const call = (name: string, ms = 50) => {
    calls.push({ name, at: Math.round(performance.now() - start) })
    return new Promise((resolve) => setTimeout(resolve, ms))
  }
  const callWithCallback = (name: string, callback: () => void) => void call(name).finally(callback)
  const seen = (...some: unknown[]): void => {
    values.push(...some)
  }
  const known = {
    ...core,
    createQueue,
    Bottleneck,
    promisify,
    call,
    callWithCallback,
    seen,
    setTimeout,
    AbortSignal,
  }
  compileFunction(code, Object.keys(known))(...Object.values(known))
  for (let i = 0; i < 180; i++) await jest.advanceTimersByTimeAsync(1000)
  jest.useRealTimers()
  return { calls, values }
}

it('finds the examples', () => {
  expect(examples.length).toBeGreaterThanOrEqual(18)
})

it.each(examples)('%s', async (_, theirs, ours) => {
  const [expected, own] = [await run(theirs), await run(ours)]
  expect(own.calls.map(({ name }) => name)).toEqual(expected.calls.map(({ name }) => name))
  for (const [i, { at }] of expected.calls.entries()) {
    expect(Math.abs(own.calls[i]!.at - at)).toBeLessThanOrEqual(TOLERANCE_MS)
  }
  expect(own.values).toEqual(expected.values)
})
