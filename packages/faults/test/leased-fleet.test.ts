import { type RedisServer, startRedis } from '@sluice/harness/redis'
import type { PolicySpec } from '../src/policy-spec.js'
import { type Fleet, processes, startFleet } from '../src/fleet.js'

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

// Rows 1 and 2 of the faults race for every algorithm, and ask buckets for more than their rate.
describe('processes with leases that call one Redis all the time', () => {
  it('are never served more than the limit in any window', async () => {
    const spec: PolicySpec = ['slidingLog', { limit: 300, window: '500ms' }]
    const { host, port } = server
    const leases = { ttl: '300ms', size: 50 } as const
    const job = { redis: { host, port }, key: 'log', policies: [spec], callers: CALLERS, leases, seconds: 2 }
    const results = await fleet.run(Array.from({ length: MEMBERS }, () => job))
    expect(results.flatMap(({ errors }) => errors)).toEqual([])
    const servedAt = results.flatMap((result) => result.servedAt).sort((a, b) => a - b)
    const tooClose = servedAt.filter((at, i) => at - (servedAt[i - 300] ?? -Infinity) < 500_000)
    expect(tooClose).toEqual([])
    expect(servedAt.length).toBeGreaterThan(300)
  }, 60_000)
})
