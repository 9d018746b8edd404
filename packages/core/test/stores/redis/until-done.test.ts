import { untilDone } from '../../../src/stores/redis/clients/until-done.js'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

/** The milliseconds between attempts of which so many fail. */
async function pausesOf(failing: number, fail: () => Promise<unknown>): Promise<number[]> {
  const at: number[] = []
  const attempts = untilDone(() => (at.push(Date.now()) > failing ? Promise.resolve() : fail()))
  attempts.start()
  await jest.advanceTimersByTimeAsync(3_600_000)
  attempts.end()
  return at.slice(1).map((instant, i) => instant - at[i]!)
}

it.each([
  ['rejects', () => Promise.reject(new Error('refused'))],
  [
    'throws',
    () => {
      throw new Error('no such client')
    },
  ],
])('an attempt that %s is made again, more and more seldom, until one succeeds', async (_, fail) => {
  const pauses = await pausesOf(12, fail)
  expect(pauses).toHaveLength(12)
  for (const [i, pause] of pauses.entries()) {
    const longest = Math.min(1000 * 2 ** i, 60_000)
    expect(pause).toBeGreaterThanOrEqual(Math.floor(longest / 2))
    expect(pause).toBeLessThanOrEqual(longest)
  }
})

it('begins with short pauses again once an attempt has succeeded', async () => {
  const at: number[] = []
  const attempts = untilDone(() =>
    [5, 7].includes(at.push(Date.now())) ? Promise.resolve() : Promise.reject(new Error('x')),
  )
  attempts.start()
  await jest.advanceTimersByTimeAsync(60_000)
  expect(at).toHaveLength(5)
  attempts.start()
  await jest.advanceTimersByTimeAsync(1000)
  expect(at).toHaveLength(7)
  attempts.end()
})

it('makes no attempt once it has ended', async () => {
  const attempt = jest.fn(() => Promise.reject(new Error('refused')))
  const attempts = untilDone(attempt)
  attempts.start()
  attempts.end()
  attempts.start()
  await jest.advanceTimersByTimeAsync(60_000)
  expect(attempt).toHaveBeenCalledTimes(1)
})
