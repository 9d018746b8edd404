import express from 'express'
import * as fc from 'fast-check'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createLimiter, type Decision, memoryStore, type Policy } from '@sluice/core'
import { replay } from '@sluice/cli'
import { makePolicy } from '@sluice/policies'
import { rateLimit } from '@sluice/express'
import { expectWarnings } from '@sluice/harness/warnings'
import {
  findShapes,
  operationOf,
  runsIn,
  Session,
  type Shape,
  starts,
  type Step,
  tiers,
  traffic,
} from '@sluice/testing/internal'
import { callAt, readingOf } from './calls.js'
import { readAll, sourceOf } from './bytes.js'

const { shapes } = findShapes()
// Of budgets in the memory of the limiters that replays are compared with.
beforeEach(() => expectWarnings([], { perhaps: ['STORE_FORGETS'] }))
/** A fifth of the kit's sequences, in full 1,000 of each shape: each is decided twice. */
const RUNS = Math.min(1000, Math.ceil(runsIn('CONFORMANCE_RUNS', 5000) / 5))

/** A decision as both sides report it. */
const told = ({ allowed, policy, remaining, retryAfterMs, reason }: Decision) => ({
  allowed,
  policy,
  remaining,
  retryAfterMs,
  reason,
})

/**
 * The calls of the kit's traffic: edges of windows and announced instants, of several keys, with costs. Only calls that
 * consume: a log has one line for each, and none for what settled, refunded or charged it later.
 */
async function callsOf(policies: readonly Policy[], start: number, steps: readonly Step[]) {
  const session = await Session.open((clock) => memoryStore({ clock }), start)
  const callers = [0, 1, 2].map(() => session.caller(policies))
  const calls = []
  for (const step of steps) {
    const caller = callers[step.parts % 3]!
    const operation = operationOf(step, session.now, policies, caller.known)
    await caller.perform(operation)
    calls.push(callAt(session.now, `key ${step.parts % 3}`, operation.cost))
  }
  await session.close()
  return calls
}

async function expectLive(
  list: readonly Shape[],
  numbers: readonly (readonly Parameters<Shape['factory']>[0][])[],
  start: number,
  steps: readonly Step[],
) {
  const policies = list.map((shape, i) => shape.factory(numbers[i]![0]!).with({ name: `policy ${i}` }))
  const calls = await callsOf(policies, start, steps)
  let now = start
  const store = memoryStore({ clock: () => now })
  const limiter = createLimiter({ name: 'live', policies, store })
  const live = calls.map(({ at, keys, cost }) => {
    now = at
    return told(limiter.decide(keys[0]!, { cost }) as Decision)
  })
  await store.close()
  const replayed: unknown[] = []
  const onDecision = (_time: string, _limiter: string, _call: unknown, decision: Decision) =>
    replayed.push(told(decision))
  const limiters = [{ name: 'live', policies, by: undefined, where: undefined }]
  const { answers } = await replay(readingOf(calls), { limiters, onDecision })
  expect(replayed).toEqual(live)
  expect(answers[0]!.limiters[0]!.denied).toBe(live.filter(({ allowed }) => !allowed).length)
}

describe('replay is live', () => {
  it.each(shapes.map((shape) => [shape.title, shape] as const))(
    'under %s',
    async (_, shape) => {
      const scenario = fc.tuple(tiers(shape, 1), starts, traffic({ kinds: { consume: 1 }, most: 40 }))
      await fc.assert(
        fc.asyncProperty(scenario, ([numbers, start, steps]) => expectLive([shape], [numbers], start, steps)),
        { numRuns: RUNS },
      )
    },
    60_000,
  )

  it('under lists of policies', async () => {
    const lists = fc.array(fc.constantFrom(...shapes), { minLength: 2, maxLength: 4 })
    const scenario = lists.chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc.tuple(...list.map((shape) => tiers(shape, 1))),
        starts,
        traffic({ kinds: { consume: 1 }, most: 40 }),
      ),
    )
    await fc.assert(
      fc.asyncProperty(scenario, ([list, numbers, start, steps]) => expectLive(list, numbers, start, steps)),
      { numRuns: RUNS },
    )
  }, 60_000)
})

/** A log as a service writes it: one line of JSON for each request, with the address that Express reports. */
async function recordedLog(policies: readonly Policy[]): Promise<string> {
  let now = 1_760_104_536_000_000
  const lines: string[] = []
  const app = express().set('trust proxy', 1)
  app.use((req, res, next) => {
    const time = new Date(now / 1000).toISOString()
    res.on('finish', () =>
      lines.push(
        JSON.stringify({ time, ip: req.ip, method: req.method, path: req.path, status: res.statusCode }),
      ),
    )
    next()
  })
  app.use(rateLimit({ name: 'api', policies, store: memoryStore({ clock: () => now }) }))
  app.get('/', (_req, res) => void res.send('ok'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (let i = 0; i < 150; i++) {
    now += ((i * 7919) % 61) * 1000
    const address = i % 3 === 0 ? '::ffff:203.0.113.7' : `2001:db8:${i % 4}::${i}` // of an IPv6 network each time another
    await (await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-forwarded-for': address } })).text()
  }
  server.closeAllConnections()
  server.close()
  return `${lines.join('\n')}\n`
}

it('a log recorded through Express has no call that its own policies decide otherwise', async () => {
  const policies = findShapes()
    .shapes.filter(({ variant }) => !('every' in variant))
    .slice(0, 3)
    .map(({ factory, variant }, i) => factory({ ...variant, limit: 5 + i, window: 900 + i * 300 }))
  const log = await recordedLog(policies)
  const limiters = [{ name: 'api', policies, by: undefined, where: undefined }]
  const answerOf = async (text: string) => {
    const read = await readAll([sourceOf('log', text)])
    return (
      await replay(
        { ...read.reading, resolution: 1, batches: readingOf(read.calls).batches },
        { limiters, against: 'log' },
      )
    ).answers[0]!
  }
  const {
    limiters: [api],
    against,
  } = await answerOf(log)
  expect(api!.denied).toBeGreaterThan(20)
  expect(against).toEqual({ allowedToDenied: 0, deniedToAllowed: 0, callers: [] })
  const { against: changed } = await answerOf(log.replaceAll('429', '200'))
  expect(changed).toMatchObject({ allowedToDenied: api!.denied, deniedToAllowed: 0 })
}, 30_000)

describe('an interruption', () => {
  const policies = [makePolicy({ algorithm: 'slidingLog', limit: 1, window: '10s' })]
  const limiters = [{ name: 'api', policies, by: undefined, where: undefined }]
  const calls = Array.from({ length: 100_000 }, (_, i) => callAt(1e15 + i))

  it('ends while calls are decided that were read together: what was found is the calls before', async () => {
    async function* together() {
      yield calls
    }
    const controller = new AbortController()
    const { signal } = controller
    const options = { limiters, signal, onDecision: () => controller.abort() }
    const { basis } = await replay({ ...readingOf([]), batches: together() }, options)
    expect([basis.calls, basis.complete]).toEqual([2 ** 14 - 1, false])
  })

  it('of the reading leaves what was read to be decided', async () => {
    const { basis } = await replay(readingOf(calls.slice(0, 9000)), { limiters, signal: AbortSignal.abort() })
    expect([basis.calls, basis.complete]).toEqual([9000, false])
  })
})

it('callers are those of the first limiter that counts a call, whichever keys other limiters deny', async () => {
  const policies = [makePolicy({ algorithm: 'slidingLog', limit: 1, window: '10s' })]
  const limiters = ['ip', 'header:team'].map((name) => ({ name, policies, by: undefined, where: undefined }))
  const calls = [0, 1].map((second) => ({ ...callAt(second * 1e6), keys: [`10.0.0.${second}`, 'a team'] }))
  const { basis, answers } = await replay(readingOf(calls), { limiters })
  expect(answers[0]!.limiters.map(({ worst }) => worst.map(({ key }) => key))).toEqual([[], ['a team']])
  expect(basis.callers).toBe(2)
})
