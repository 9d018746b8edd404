import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { randomFrom } from '@sluice/harness/figures'
import { type Answers, gather, pass, useFakeTime } from './crowd.js'

useFakeTime()
jest.setTimeout(60_000)

const served = () => new Response('ok')
const BEGIN_MS = 5000

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
