import { createLimiter, gcra, type Limiter, slidingLog } from '@sluice/core'
import { until } from '@sluice/harness/redis'
import { Meeting } from './meeting.js'

const free = [gcra({ limit: 2, window: '1d' })]
const paid = [slidingLog({ limit: 100, window: '1h' })]
const team = [gcra({ limit: 10, window: '1m' }), slidingLog({ limit: 1000, window: '1d' })]
const lists = [free, paid, team]

let meeting: Meeting
let limiters: { readonly server: Limiter; readonly client: Limiter }
beforeEach(async () => {
  meeting = new Meeting()
  const [server, client] = await meeting.pair({ denialCache: false })
  const options = { policies: free, tiers: [paid, team], penalty: { block: '1h' }, deadline: '10s' } as const
  limiters = {
    server: createLimiter({ name: 'api', ...options, store: server }),
    client: createLimiter({ name: 'api', ...options, store: client }),
  }
})
afterEach(() => meeting.end())

const reasons = async (limiter: Limiter) => {
  const decisions = await Promise.all(lists.map((policies) => limiter.consume('k', { policies })))
  return decisions.map(({ reason }) => reason)
}

describe.each([
  ['server', 'client'],
  ['client', 'server'],
] as const)('a key that the %s blocks', (by, other) => {
  it('is blocked for the other process under every declared list, until it is unblocked', async () => {
    await limiters[other].consume('k', { policies: paid })
    await limiters[by].block('k', '1h')
    expect(await reasons(limiters[other])).toEqual(['blocked', 'blocked', 'blocked'])
    await limiters[by].unblock('k')
    expect(await limiters[other].peek('k', { policies: paid })).toMatchObject({
      allowed: true,
      remaining: 99,
    })
  })

  it('by a penalty is blocked there under every declared list, for no longer', async () => {
    for (let i = 0; i < 2; i++) await limiters[by].consume('k')
    expect((await limiters[by].consume('k')).reason).toBe('limit')
    await until('the block under every list', async () => {
      const seen = await Promise.all(
        lists.map((policies) => limiters[other].peek('k', { policies, cost: 0 })),
      )
      return seen.every(({ reason, retryAfterMs }) => reason === 'blocked' && retryAfterMs <= 3_600_000)
    })
  })
})
