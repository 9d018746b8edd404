import { createLimiter, gcra, memoryStore } from '@sluice/core'
import fc from 'fast-check'
import { randomFrom } from '@sluice/harness/figures'
import { type Answers, gather, pass, useFakeTime } from './crowd.js'

useFakeTime()
jest.setTimeout(60_000)

const served = () => new Response('ok')
const BEGIN_MS = 5000

/** The headers of a refusal, which may depend on the time. */
type Stated = () => Record<string, string>

/** Refuses each request of an outage. */
function outage(status: number, forMs: number, headers: Record<string, string> = {}): Answers {
  return (at) =>
    at >= BEGIN_MS && at < BEGIN_MS + forMs ? new Response('no', { status, headers }) : served()
}

const OUTAGES = [
  [429, 3, 1],
  [429, 60, 20],
  [503, 3, 1],
  [503, 3, 20],
  [503, 60, 4],
  [503, 3600, 4],
  [529, 3, 4],
  [529, 60, 20],
  [503, 3, 80],
] as const

it.each(OUTAGES)(
  'an outage of %d for %d s and %d callers gets what is under way, 8 calls and one in 45 s, and a minute later it is known to be over',
  async (status, seconds, callers) => {
    const crowd = gather(callers, outage(status, seconds * 1000))
    await pass(BEGIN_MS - 1)
    const underWay = crowd.underWay()
    await pass(seconds * 1000 + 1)
    const before = crowd.sent.length
    const refused = crowd.sent.filter(({ isRefused }) => isRefused).length
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThanOrEqual(underWay + 8 + seconds / 45)
    for (let second = 0; second < 60 && !crowd.sent[before]; second++) await pass(1000)
    expect(crowd.sent[before]).toMatchObject({ isRefused: false })
  },
)

describe('a wait that the other side states', () => {
  /** The refusals of an outage whose n-th refusal has the n-th of these headers, and the most that there may be. */
  async function refusals(
    status: number,
    seconds: number,
    stated: readonly Stated[],
    callers = 20,
  ): Promise<{ readonly refused: number; readonly most: number }> {
    let n = 0
    const answers: Answers = (at) =>
      at < BEGIN_MS || at >= BEGIN_MS + seconds * 1000
        ? served()
        : new Response('no', { status, headers: stated[n++ % stated.length]!() })
    const crowd = gather(callers, answers)
    await pass(BEGIN_MS - 1)
    const most = crowd.underWay() + 8 + seconds / 45 + 10 * seconds
    await pass(seconds * 1000 + 1)
    jest.clearAllTimers() // ends the crowd
    return { refused: crowd.sent.filter(({ isRefused }) => isRefused).length, most }
  }

  const past = () => new Date(Date.now() - 60_000).toUTCString()
  const short = [
    ['retry-after', () => '0'],
    ['retry-after', past],
    ['retry-after', () => '0.05'],
    ['retry-after-ms', () => '0.001'],
    ['retry-after-ms', () => '99'],
    ['x-ratelimit-reset', () => '0.001'],
  ] as const

  it.each(short)('of %s %p lets no more calls into an outage than none', async (name, value) => {
    for (const status of [429, 503]) {
      const { refused } = await refusals(status, 3, [() => ({ [name]: value() })])
      expect(refused).toBeGreaterThan(0)
      expect(refused).toBeLessThanOrEqual((await refusals(status, 3, [() => ({})])).refused + 8)
    }
  })

  it('lets 10 calls a second into an outage at most, whatever it is', async () => {
    const name = fc.constantFrom(
      'retry-after',
      'retry-after-ms',
      'x-amz-retry-after',
      'x-ratelimit-reset',
      'x-ratelimit-reset-after',
      'age',
    )
    const value = fc.oneof(
      fc.constantFrom('0', '0.001', '0.1', '1', '99', '100', '101', '1e3', '-1', '0, 0', '0, 0.05', '1ms'),
      fc.double({ min: 0, max: 3, noNaN: true }).map((number) => number.toFixed(3)),
      fc.nat(400).map(String),
    )
    const form = fc.constantFrom<(text: string) => string>(
      String,
      (text) => `${text}ms`,
      (text) => ((Date.now() + Number(text)) / 1000).toFixed(3),
      (text) => new Date(Date.now() + (Number(text) || 0)).toUTCString(),
    )
    const headers = fc.array(fc.tuple(name, value, form), { maxLength: 3 }).map(
      (list): Stated =>
        () =>
          Object.fromEntries(list.map(([key, text, shown]) => [key, shown(text)])),
    )
    const some = fc.array(headers, { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(429, 503, 529),
        some,
        fc.constantFrom(1, 20, 60),
        async (status, stated, callers) => {
          const { refused, most } = await refusals(status, 5, stated, callers)
          expect(refused).toBeLessThanOrEqual(most)
        },
      ),
      { numRuns: 30 },
    )
  })

  it('of a few milliseconds costs its retries from the second refusal on', async () => {
    const crowd = gather(20, outage(429, 3000, { 'retry-after-ms': '20' }), {
      retryBudget: { ratio: 0, perSecond: 0 },
    })
    await pass(BEGIN_MS - 1)
    const underWay = crowd.underWay()
    await pass(3000)
    // That of the first refusal is free.
    expect(crowd.ended.get(429)).toBeGreaterThanOrEqual(underWay - 1)
  })
})

// At a thousand a second, where strays meet: row 40 of the fault matrix.
it('1 % of stray 503s cost at most 2 % of a rate of 100 a second', async () => {
  const [rate, seconds] = [100, 100]
  const random = randomFrom(11)
  const limiter = createLimiter({
    name: 'test',
    policies: [gcra({ limit: rate, window: '1s', burst: 1 })],
    store: memoryStore(),
  })
  const answers = () => (random() < 0.01 ? new Response('no', { status: 503 }) : served())
  const crowd = gather(20, answers, {}, limiter)
  await pass(seconds * 1000)
  expect(crowd.sent.filter(({ isRefused }) => isRefused).length).toBeGreaterThan(80)
  expect(crowd.ended.get(200)).toBeGreaterThan(0.98 * rate * seconds)
})
