import { type Cluster, command, startCluster, until } from '@sluice/harness/redis'
import { createLimiter, gcra, slidingLog, type Store } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

jest.setTimeout(60_000)

const free = [gcra({ limit: 2, window: '1d' })]
const paid = [slidingLog({ limit: 100, window: '1h' })]
const team = [gcra({ limit: 10, window: '1m' }), slidingLog({ limit: 1000, window: '1d' })]
const lists = [free, paid, team]

const { server } = oneRedis()
let cluster: Cluster
beforeAll(async () => void (cluster = await startCluster()))
afterAll(() => cluster.stop())

const stores: Record<string, () => Store> = {
  Redis: () => redisStore({ host: server.host, port: server.port }, { denialCache: false }),
  Cluster: () =>
    redisStore(
      { cluster: cluster.masters.map(({ host, port }) => ({ host, port })) },
      { denialCache: false },
    ),
}

describe.each(Object.entries(stores))('two processes that share a %s', (name, open) => {
  let opened: Store[]
  beforeEach(() => void (opened = [open(), open()]))
  afterEach(() => Promise.all(opened.map(async (store) => store.close())))

  /** The limiters of both. The first has used none of the declared lists when a key is blocked. */
  const pair = (key: string) =>
    opened.map((store) =>
      createLimiter({
        name: `${name} ${key}`,
        policies: free,
        tiers: [paid, team],
        penalty: { block: '1h' },
        deadline: '10s',
        store,
      }),
    ) as [Limited, Limited]
  type Limited = ReturnType<typeof createLimiter>
  const reasons = async (limiter: Limited) => {
    const decisions = await Promise.all(lists.map((policies) => limiter.consume('k', { policies })))
    return decisions.map(({ reason }) => reason)
  }

  it('share its bans under every declared list, and their end', async () => {
    const [one, other] = pair('banned')
    await other.consume('k', { policies: paid })
    await one.block('k', '1h')
    expect(await reasons(other)).toEqual(['blocked', 'blocked', 'blocked'])
    await one.unblock('k')
    expect(await other.peek('k', { policies: paid })).toMatchObject({ allowed: true, remaining: 99 })
    await one.hold('k', '1h')
    expect(await reasons(other)).toEqual(['held', 'held', 'held'])
    await one.reset('k')
    expect(await other.peek('k', { policies: paid })).toMatchObject({ allowed: true, remaining: 100 })
  })

  it('share the block of a penalty, which ends under all of them with that of the first', async () => {
    const [one, other] = pair('penalized')
    for (let i = 0; i < 2; i++) await one.consume('k')
    const { reason, retryAfterMs } = await one.consume('k')
    expect([reason, retryAfterMs >= 3_600_000]).toEqual(['limit', true])
    await until('the block under every list', async () => {
      const seen = await Promise.all(lists.map((policies) => other.peek('k', { policies, cost: 0 })))
      return seen.every(({ reason, retryAfterMs }) => reason === 'blocked' && retryAfterMs <= 3_600_000)
    })
  })

  it('that has no block of a key keeps none for its end', async () => {
    const [one] = pair('fresh')
    await one.unblock('k')
    const nodes = name === 'Redis' ? [server] : cluster.masters
    const keys = await Promise.all(nodes.map((node) => command<string[]>(node, 'KEYS', `*${name} fresh*`)))
    expect(keys.flat()).toEqual([])
  })
})
