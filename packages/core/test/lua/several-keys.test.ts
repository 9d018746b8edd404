import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../src/index.js'
import { composeScript } from '../../src/stores/redis/script/compose.js'
import {
  hasHealed,
  NumberReader,
  packRequest,
  type ScriptRequest,
  unpackAnswer,
  unpackAnswers,
  unpackFailure,
} from '../../src/stores/redis/script/wire.js'
import type { Answer } from '../../src/stores/store.js'
import { type LuaCalls, type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
/** Calls that are made together set the time to live once, by the last of them. */
const withoutExpiry = (state: Buffer) => [state.subarray(0, 8), state.subarray(16)]
const NOW = 1_800_000_000_000_000
const minute = { limit: 5, window: '1m' } as const

type Reply = readonly Answer[] | Buffer
const isHealed = (reply: Reply): boolean => Buffer.isBuffer(reply) && hasHealed(reply)
const failureOf = (reply: Reply): string | undefined =>
  Buffer.isBuffer(reply) ? unpackFailure(reply) : undefined

const LISTS: readonly (readonly [string, readonly Policy[]])[] = [
  ['gcra', [gcra(minute)]],
  ['interval refill', [tokenBucket({ ...minute, refill: 'interval' })]],
  ['buckets', [slidingWindow({ ...minute, buckets: 4 })]],
  ['weighted buckets', [slidingWindow({ ...minute, buckets: 4, count: 'weighted' })]],
  ['log', [slidingLog(minute)]],
  [
    'three policies',
    [gcra(minute), slidingLog({ ...minute, name: 'log' }), slidingWindow({ ...minute, name: 'w' })],
  ],
]

describeWithLua(missing ?? 'one call of the script for several keys', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  let keys = 0
  const someKeys = (n: number) => Array.from({ length: n }, () => Buffer.from(`several ${keys++}`))
  const pack = (policies: readonly Policy[], request: Partial<ScriptRequest> = {}) =>
    packRequest({ operation: 'consume', policies, cost: 1, ...request }, -1, 1)
  const alone = (policies: readonly Policy[], key: Buffer, request?: Partial<ScriptRequest>, now = NOW) =>
    redis.run(composeScript(policies), now, key, pack(policies, request))
  /** For each key the answers of its plain calls, or the reply of its own. */
  const together = (policies: readonly Policy[], calls: LuaCalls, count = 1): Reply[] => {
    const [packed, ...own] = redis.runAll(composeScript(policies), NOW, calls) as Buffer[]
    const reply = new NumberReader(packed!, true)
    return calls.map(() =>
      reply.passMark() ? own.shift()! : Array.from({ length: count }, () => reply.passed(policies.length)),
    )
  }
  const answersOf = (policies: readonly Policy[], reply: Reply, count = 1) =>
    Buffer.isBuffer(reply) ? unpackAnswers(reply, policies, count) : reply
  const stateOf = (key: Buffer) =>
    redis.run(`return redis.call('GET', KEYS[1]) or ''`, NOW, key, Buffer.of(0))

  describe.each(LISTS)('%s', (_, policies) => {
    it('answers a charge that can be undone as any other, whatever its cost', () => {
      const keys = someKeys(2)
      for (const cost of [3, 2]) {
        const answers = (['commit', 'consume'] as const).map((operation, i) =>
          unpackAnswer(alone(policies, keys[i]!, { operation, cost }), { operation, policies, cost }, 'a'),
        )
        const [committed, consumed] = answers.map(({ remaining, resetAt, parts }) => ({
          remaining,
          resetAt,
          parts,
        }))
        expect(committed).toEqual(consumed)
      }
    })

    it('gives the answers and leaves the states of calls that are sent one by one', () => {
      const [batch, apart] = [someKeys(7), someKeys(7)]
      for (const [i, key] of [...batch, ...apart].entries()) {
        for (let call = 0; call < i % 7; call++)
          alone(policies, key, {}, NOW - ((3 * i + call) % 7) * 7_000_000)
      }
      const replies = together(
        policies,
        batch.map((key) => [key, pack(policies)]),
      )
      expect(replies.map((reply) => answersOf(policies, reply))).toEqual(
        apart.map((key) => unpackAnswers(alone(policies, key), policies, 1)),
      )
      expect(replies.some(Buffer.isBuffer)).toBe(true)
      expect(replies.every(Buffer.isBuffer)).toBe(false)
      expect(batch.map(stateOf)).toEqual(apart.map(stateOf))
    })

    it('answers plain calls and others in the order of their keys, each with its argument or the last one', () => {
      const [batch, apart] = [someKeys(8), someKeys(8)]
      const known = (_: Buffer, i: number) => i % 3 === 1
      for (const key of [...batch.filter(known), ...apart.filter(known)]) alone(policies, key)
      const requests = [2, 2, 6, 1, 3, 4, 4, 4].map((cost) => ({ cost }))
      const calls = batch.map((key, i) =>
        i < 6 ? ([key, pack(policies, requests[i])] as const) : ([key] as const),
      )
      const replies = together(policies, calls)
      expect(replies.map((reply) => answersOf(policies, reply))).toEqual(
        apart.map((key, i) => unpackAnswers(alone(policies, key, requests[i]), policies, 1)),
      )
      expect(batch.map(stateOf)).toEqual(apart.map(stateOf))
    })

    it('makes equal calls on one key one after the other, and answers a denial once', () => {
      for (const [before, cost] of [0, 2, 5].flatMap((n) => [1, 2, 6].map((c) => [n, c] as const))) {
        const [counted, apart] = someKeys(2) as [Buffer, Buffer]
        for (const key of [counted, apart]) {
          for (let call = 0; call < before; call++) alone(policies, key)
        }
        const [reply] = together(policies, [[counted, pack(policies, { cost, count: 7 })]], 7)
        const answers: Answer[] = []
        for (let i = 0; i < 7; i++) {
          answers.push(
            unpackAnswer(alone(policies, apart, { cost }), { operation: 'consume', policies, cost }, 'k'),
          )
        }
        expect(answersOf(policies, reply!, 7)).toEqual(answers)
        expect(withoutExpiry(stateOf(counted))).toEqual(withoutExpiry(stateOf(apart)))
      }
    })

    it('decides the others when the state of one is broken, and reports which it was', () => {
      const batch = someKeys(3)
      for (const key of batch) alone(policies, key)
      redis.run(`redis.call('SET', KEYS[1], 'x') return ''`, NOW, batch[1]!, Buffer.of(0))
      const calls = batch.map((key) => [key, pack(policies, { count: 2 })] as const)
      const replies = together(policies, calls, 2)
      expect(replies.map(isHealed)).toEqual([false, true, false])
      const left = replies.map((reply) => answersOf(policies, reply, 2)[1]!.remaining)
      expect(left).toEqual([2, 3, 2])
    })
  })

  it('drops the state of a key whose slots are broken, and of no other', () => {
    const policies = [slidingLog(minute)]
    const batch = someKeys(3)
    for (const key of batch) alone(policies, key)
    const breaks = `redis.call('SETRANGE', KEYS[1], 64, string.rep('x', 8)) return ''`
    redis.run(breaks, NOW, batch[0]!, Buffer.of(0))
    const calls = batch.map((key) => [key, pack(policies)] as const)
    expect(together(policies, calls).map(isHealed)).toEqual([true, false, false])
    expect(batch.map((key) => stateOf(key).length > 0)).toEqual([false, true, true])
  })

  it('reports the error of a key that fails, and answers the others', () => {
    const policies = [fixedWindow(minute)]
    const [known, fresh] = someKeys(2) as [Buffer, Buffer]
    alone(policies, known)
    redis.refuse('SET', 'ERR no room here')
    const calls = [fresh, known, fresh].map((key) => [key, pack(policies)] as const)
    const replies = together(policies, calls)
    redis.refuse('SET')
    const message = 'ERR no room here'
    expect(replies.map(failureOf)).toEqual([message, undefined, message])
    expect(answersOf(policies, replies[1]!)[0]!.remaining).toBe(3)
  })

  it('reports an invalid argument to the calls of its key alone', () => {
    const policies = [fixedWindow(minute)]
    const [first, second] = someKeys(2) as [Buffer, Buffer]
    const replies = together(policies, [
      [first, pack(policies, { cost: 0.5 })],
      [second, pack(policies)],
    ])
    expect(replies.map(failureOf)).toEqual(['ERR cost must be a whole number from 0 to 2^31', undefined])
  })

  it('fails as a whole on a server that takes no writes', () => {
    const policies = [fixedWindow(minute)]
    redis.refuse('SET', 'READONLY no writes here')
    const calls = someKeys(2).map((key) => [key, pack(policies)] as const)
    expect(() => redis.runAll(composeScript(policies), NOW, calls)).toThrow('READONLY no writes here')
    redis.refuse('SET')
  })
})
