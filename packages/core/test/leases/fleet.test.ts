import { everyAlgorithm, policyOf, type PolicySpec } from '../faults/every-algorithm.js'
import { type Fleet, processes, startFleet } from '../faults/fleet.js'
import { type RedisServer, startRedis } from '../redis/servers/redis-server.js'
import { termsOf } from '../../src/leases/terms.js'

const MEMBERS = 3
const CALLERS = 16

let server: RedisServer
let fleet: Fleet
beforeAll(async () => {
  server = await startRedis()
  fleet = await startFleet(processes(MEMBERS))
}, 60_000)
afterAll(async () => {
  await fleet.end()
  await server.stop()
})

async function served(key: string, spec: PolicySpec, ttl: '30s' | '300ms', rest: object) {
  const { host, port } = server
  const leases = { ttl, size: 50 } as const
  const job = { redis: { host, port }, key, policies: [spec], callers: CALLERS, leases, ...rest }
  const results = await fleet.run(Array.from({ length: MEMBERS }, () => job))
  return {
    errors: results.flatMap(({ errors }) => errors),
    servedAt: results.flatMap(({ servedAt }) => servedAt).sort((a, b) => a - b),
    asked: results.reduce((sum, { admittedAt }) => sum + admittedAt.length, 0),
  }
}

describe('processes with leases on one Redis who race for a key', () => {
  // Each process could use the limit up alone, so each is denied in the end, and then holds nothing.
  it.each(everyAlgorithm(1000))(
    'are served exactly what the limit leaves: %s',
    async (title, spec) => {
      const { errors, servedAt, asked } = await served(title, spec, '30s', { calls: 70 })
      expect(errors).toEqual([])
      expect(servedAt).toHaveLength(termsOf([policyOf(spec)], 30_000).told[0]!.capacity)
      expect(asked).toBeLessThan(servedAt.length / 2)
    },
    60_000,
  )
})

describe('processes with leases on one Redis who call all the time', () => {
  const [rate, burst] = [1000, 500]
  const numbers = { limit: rate, window: '1s' } as const

  it.each<PolicySpec>([
    ['gcra', { ...numbers, burst }],
    ['tokenBucket', { ...numbers, capacity: burst }],
    ['leakyBucket', { ...numbers, capacity: burst }],
  ])(
    'are never served more than the burst and the rate: %s',
    async (...spec) => {
      const { errors, servedAt } = await served(spec[0], spec, '300ms', { seconds: 1 })
      expect(errors).toEqual([])
      let [level, last, over] = [burst * 1e6, servedAt[0]!, 0]
      for (const at of servedAt) {
        level = Math.min(burst * 1e6, level + rate * (at - last)) - 1e6
        last = at
        if (level < 0) over++
      }
      expect(over).toBe(0)
      expect(servedAt.length).toBeGreaterThan(burst)
    },
    60_000,
  )

  it('are never served more than the limit in any window', async () => {
    const spec: PolicySpec = ['slidingLog', { limit: 300, window: '500ms' }]
    const { errors, servedAt } = await served('log', spec, '300ms', { seconds: 2 })
    expect(errors).toEqual([])
    const tooClose = servedAt.filter((at, i) => at - (servedAt[i - 300] ?? -Infinity) < 500_000)
    expect(tooClose).toEqual([])
    expect(servedAt.length).toBeGreaterThan(300)
  }, 60_000)
})
