import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { findShapes } from '@sluice/testing/internal'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import type { Policy } from '../../src/index.js'
import { composeScript } from '../../src/stores/redis/script/compose.js'
import { STATE_FORMAT } from '../../src/stores/redis/redis-key.js'
import { packCharge, packRequest, type ScriptRequest } from '../../src/stores/redis/script/wire.js'

/*
 * What lies in Redis after the same calls, of every algorithm. Where this differs from before, a process of the version
 * before would read the state wrongly: raise STATE_FORMAT together with the digest. Never change the digest alone.
 */
const LAYOUTS = { format: 2, digest: '6f4001580616ccec98aab54fe415ad3faa562b9083341330eee239f9afafae62' }

const START = 1_767_225_600_000_000
const numbers = { limit: 5, window: 60_000 }

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 })
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

it('has the layout that belongs to its format', async () => {
  const lists = findShapes().shapes.map(({ factory, variant }) => [factory({ ...numbers, ...variant })])
  const three = lists.slice(0, 3).map(([policy]) => policy!)
  const states = await Promise.all([
    ...[...lists, three].map((policies, i) => stateAfterCalls(policies, `${i}`)),
    ...lists.map((policies, i) => stateAfterRefusals(policies, `refused ${i}`)),
  ])
  const digest = createHash('sha256').update(Buffer.concat(states)).digest('hex')
  expect({ format: STATE_FORMAT, digest }).toEqual(LAYOUTS)
})

/** The state that a penalty leaves after its first block. */
async function stateAfterRefusals(policies: readonly Policy[], key: string): Promise<Buffer> {
  const penalty = { after: 2, block: 60_000_000, factor: 2, maxBlock: 600_000_000, forgetAfter: 600_000_000 }
  for (const [i, cost] of [5, 1, 1].entries()) {
    const argument = packRequest({ operation: 'consume', policies, cost }, START + i * 1_000_000, i + 1)
    await client.callBuffer('EVAL', composeScript(policies, penalty), 1, key, argument)
  }
  return (await client.getBuffer(key))!
}

/** The state that calls of every kind leave, with nonces of 1 and up. */
async function stateAfterCalls(policies: readonly Policy[], key: string): Promise<Buffer> {
  const script = composeScript(policies)
  const calls: readonly (readonly [seconds: number, request: Omit<ScriptRequest, 'policies'>])[] = [
    [0, { operation: 'consume', cost: 3 }],
    [7, { operation: 'charge', cost: 3 }],
    [8, { operation: 'refund', cost: 1 }],
    [9, { operation: 'release', cost: 1, token: packCharge({ at: START, cost: 3, decidedAt: START }) }],
    [10, { operation: 'book', cost: 2, span: 600_000_000 }],
    [11, { operation: 'hold', span: 5_000_000 }],
    [12, { operation: 'block', span: 6_000_000 }],
  ]
  for (const [i, [seconds, request]] of calls.entries()) {
    const argument = packRequest({ ...request, policies }, START + seconds * 1_000_000, i + 1)
    await client.callBuffer('EVAL', script, 1, key, argument)
  }
  return (await client.getBuffer(key))!
}
