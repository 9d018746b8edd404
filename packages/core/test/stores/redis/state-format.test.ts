import { createHash } from 'node:crypto'
import { findShapes } from '@sluice/testing/internal'
import type { Policy } from '../../../src/index.js'
import { composeScript, composeTogether } from '../../../src/stores/redis/script/compose.js'
import { modules } from '../../../src/stores/redis/script/modules.gen.js'
import { RESERVING as RESERVING_FORMAT } from '../../../src/stores/reservations.js'
import { STATE_FORMAT } from '../../../src/stores/redis/key.js'
import { packCharge, packed, packRequest, type ScriptRequest } from '../../../src/stores/redis/script/wire.js'
import { oneRedis } from './one-redis.js'

/*
 * What lies in Redis after the same calls, of every algorithm, a semaphore and a board. Where this differs from before, a process of the version
 * before would read the state wrongly: raise STATE_FORMAT together with the digest. Never change the digest alone.
 */
const LAYOUTS = { format: 4, digest: '486e1f95572a2453f5e7f36146ae6888f5f6019f0b6f62699af9e63d4606b59f' }

const START = 1_767_225_600_000_000
const numbers = { limit: 5, window: 60_000 }

const { client } = oneRedis()

it('has the layout that belongs to its format', async () => {
  const lists = findShapes().shapes.map(({ factory, variant }) => [factory({ ...numbers, ...variant })])
  const three = lists.slice(0, 3).map(([policy]) => policy!)
  const states = await Promise.all([
    ...[...lists, three].map((policies, i) => stateAfterCalls(policies, `${i}`)),
    ...lists.map((policies, i) => stateAfterRefusals(policies, `refused ${i}`)),
    permitsAfterCalls('permits'),
    boardAfterPosts('board'),
  ])
  const digest = createHash('sha256').update(Buffer.concat(states)).digest('hex')
  expect({ format: STATE_FORMAT, digest }).toEqual(LAYOUTS)
})

/** The scripts of limiters that do not reserve, as they were before others could; but for the format of the state. */
const SCRIPTS = '89d392cbe9a68419d30d4f1d9a0744ab9040e9ff0aa248f3cbccf0b029512b26'

it('leaves the scripts of limiters that do not reserve as they are, to the byte', () => {
  const hash = createHash('sha256')
  const policies = findShapes().shapes.map(({ factory, variant }) => factory({ ...numbers, ...variant }))
  for (const [i, policy] of policies.entries()) {
    const other = policies[(i + 1) % policies.length]!
    hash.update(composeScript([policy]))
    for (const then of [undefined, 'fresh'] as const)
      hash.update(composeScript([policy, other], { ...penalty, ...(then && { then }) }))
    hash.update(composeTogether([{ policies: [policy] }, { policies: [other, policy], penalty }]))
  }
  expect(hash.digest('hex')).toBe(SCRIPTS)
})

/** What lies in Redis of limiters that reserve, as for LAYOUTS; the format is that of their keyspaces alone. */
const RESERVING = {
  format: 'reserving-2',
  digest: 'f2d0e3143b663c4295f0097ffcef18c50b86f06246696077e75fcb3208da6601',
}

it('has the layout of reservations that belongs to its format', async () => {
  const lists = findShapes().shapes.map(({ factory, variant }) => [factory({ ...numbers, ...variant })])
  const states = await Promise.all(
    lists.map((policies, i) => stateAfterReservations(policies, `reserving ${i}`)),
  )
  const digest = createHash('sha256').update(Buffer.concat(states)).digest('hex')
  expect({ format: RESERVING_FORMAT, digest }).toEqual(RESERVING)
})

/** The state of a key with a reservation that is open, and marks of one that was settled, one that has ended and one that was settled late. */
async function stateAfterReservations(policies: readonly Policy[], key: string): Promise<Buffer> {
  const script = composeScript(policies, undefined, true)
  const changeOf = (id: number, end: number, real: number) => ({
    operation: 'change' as const,
    token: packed([id, START, START + end, real, 0, 0, 10]),
  })
  const calls: readonly (readonly [seconds: number, request: Omit<ScriptRequest, 'policies'>])[] = [
    [0, { operation: 'reserve', cost: 2, reserving: [1, 30_000_000, 1, 10] }],
    [1, { operation: 'reserve', cost: 1, reserving: [2, 40_000_000, 0, 10] }],
    [2, changeOf(1, 30_000_000, 1)],
    [3, changeOf(3, 1_000_000, 1)],
    [4, { operation: 'reserve', cost: 1, reserving: [4, 1_000_000, 0, 10] }],
    [6, { operation: 'hold', span: 5_000_000 }],
  ]
  for (const [i, [seconds, request]] of calls.entries()) {
    const argument = packRequest({ ...request, policies }, START + seconds * 1_000_000, i + 1)
    await client.callBuffer('EVAL', script, 1, key, argument)
  }
  return (await client.getBuffer(key))!
}

const penalty = { after: 2, block: 60_000_000, factor: 2, maxBlock: 600_000_000, forgetAfter: 600_000_000 }

/** The state that a penalty leaves after its first block. */
async function stateAfterRefusals(policies: readonly Policy[], key: string): Promise<Buffer> {
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

/** The set of a key that has a holder and a waiting ticket, and has just lost its data. */
async function permitsAfterCalls(key: string): Promise<Buffer> {
  const packed = (step: number, limit: number, tickets: string): Buffer => {
    const times = [30_000_000, 2_000_000, 1_000_000, 700_000, START]
    return Buffer.concat([doubles([step, limit, ...times]), Buffer.from(`channel:\none\n${tickets}`)])
  }
  const script = modules['semaphore']!
  for (const argument of [packed(3, 5, 'one:1'), packed(1, 7, 'one:2'), packed(1, 7, 'one:3')]) {
    await client.callBuffer('EVAL', script, 1, key, argument)
  }
  return joined(await client.callBuffer('ZRANGE', key, '0', '-1', 'WITHSCORES'))
}

async function boardAfterPosts(key: string): Promise<Buffer> {
  const argument = Buffer.concat([doubles([60_000_000, START, 6]), Buffer.from('authortext')])
  await client.callBuffer('EVAL', modules['board']!, 1, key, argument)
  return joined(await client.callBuffer('HGETALL', key))
}

function doubles(numbers: readonly number[]): Buffer {
  return Buffer.from(Float64Array.from(numbers).buffer)
}

function joined(reply: unknown): Buffer {
  return Buffer.from((reply as readonly Buffer[]).join('\n'))
}
