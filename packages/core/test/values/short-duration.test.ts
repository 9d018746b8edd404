import { createLimiter, createSemaphore, fixedWindow, gcra } from '../../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const minute = fixedWindow({ limit: 10, window: '1m' })
const block = (duration: number | string) => createLimiter({ policies: [minute] }).block('k', duration)
const withPenalty = (duration: number | string) =>
  createLimiter({ policies: [minute], penalty: { block: duration } })

let written: ReturnType<typeof expectWarnings>

beforeEach(() => {
  written = expectWarnings([], { perhaps: ['DURATION_SHORT'] })
  jest.resetModules()
})

/** The factories of a process of their own. */
async function freshProcess() {
  const core = await import('../../src/index.js')
  const limiter = core.createLimiter({ policies: [core.fixedWindow({ limit: 10, window: '1m' })] })
  return {
    window: (window: number | string) => core.slidingLog({ limit: 10, window }),
    'penalty.block': (length: number | string) =>
      core.createLimiter({ policies: limiter.policies, penalty: { block: length, maxBlock: '365d' } }),
    block: (length: number | string) => limiter.block('k', length),
  }
}

describe.each(['window', 'penalty.block', 'block'] as const)('%s', (place) => {
  it.each([
    [1, `1 is 0.001 s; write '1s' or '1ms'`],
    [60, `60 is 0.06 s; write '1m' or '60ms'`],
    [999, `999 is 0.999 s; write '999s' or '999ms'`],
    [1800, `1800 is 1.8 s; write '30m' or '1800ms'`],
    [3600, `3600 is 3.6 s; write '1h' or '3600ms'`],
    [604_800, `604800 is 604.8 s; write '7d' or '604800ms'`],
  ])('of %d, which is meant in seconds, is a warning that says what to write', async (given, advice) => {
    await (await freshProcess())[place](given)
    expect(written).toEqual([{ code: 'DURATION_SHORT', message: `${place}: ${advice}` }])
  })

  it.each([1000, 1801, 60_000, 3_600_000, '60ms', '3600ms', '1s'])('of %p is none', async (given) => {
    await (await freshProcess())[place](given)
    expect(written).toEqual([])
  })

  it('warns once for a process', async () => {
    const { [place]: take } = await freshProcess()
    await take(60)
    await take(90)
    expect(written).toHaveLength(1)
  })
})

it('warns of each place by itself, and of no other duration', async () => {
  const process = await freshProcess()
  process.window(60)
  process['penalty.block'](60)
  await process.block(60)
  expect(written).toHaveLength(3)
  const limiter = createLimiter({
    policies: [minute],
    deadline: 50,
    penalty: { block: '1m', forgetAfter: 3600 },
  })
  await limiter.hold('k', 250)
  await limiter.acquire('other', { maxWait: 500 })
  createSemaphore({ limit: 1, deadline: 60 })
  expect(written).toHaveLength(3)
})

it('keeps the duration as it was given, in milliseconds', async () => {
  expect(gcra({ limit: 1, window: 60 }).windowMs).toBe(60)
  expect(withPenalty(60)).toBeDefined()
  await expect(block(60)).resolves.toBeUndefined()
})
