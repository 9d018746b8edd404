import 'reflect-metadata'
import { serve } from '@hono/node-server'
import { Controller, Get, Module, Post, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express, { type RequestHandler } from 'express'
import * as fc from 'fast-check'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { memoryStore, type MemoryStore } from '@sluice/core'
import { algorithms } from '@sluice/core/store'
import { type LoggedCall, replay } from '@sluice/cli'
import { rateLimit } from '@sluice/express'
import { limited } from '@sluice/http'
import { type Call, RateLimit, RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { limitsFrom, type LimitsOfFile, type PolicyFile, readPolicies, type Registry } from '@sluice/policies'
import { expectWarnings } from '@sluice/harness/warnings'
import {
  findShapes,
  operationOf,
  runsIn,
  Session,
  type Shape,
  starts,
  tiers,
  traffic,
} from '@sluice/testing/internal'
import { readAll, sourceOf } from './bytes.js'
import { readingOf } from './calls.js'

/*
 * The law of a policy file: the same trace through it in an application and through `replay` gets the same answers.
 */

/** One request of a trace, and how a log has it. */
interface Traced {
  readonly at: number
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly address: string
  readonly team: string | undefined
  readonly cost: number
}

/** Whether a request passed, and what remained under each limiter that counted it. */
interface Told {
  readonly allowed: boolean
  readonly remaining: Readonly<Record<string, number>>
}

const { shapes } = findShapes()
/** Sequences of each shape, each through three frameworks; in full 100. */
const RUNS = Math.ceil(runsIn('CONFORMANCE_RUNS', 250) / 50)

let now = 0
const stores: MemoryStore[] = []
let file: PolicyFile
let inNest: LimitsOfFile<Call>
let inExpress: RequestHandler
let inFetch: (
  request: Request,
  env: { incoming: { socket: { remoteAddress?: string } } },
) => Promise<Response>
const PLAN = 'pro'
const NONE: LimitsOfFile<Call> = [{ name: 'none', limit: 1, window: '1s', skip: () => true }]
/** Of each framework the address of its server. */
const ports: Record<string, number> = {}
const closing: (() => unknown)[] = []

beforeEach(() => void expectWarnings([], { perhaps: ['API_KEY_MISSING', 'STORE_FORGETS'] }))
beforeAll(async () => {
  const app = express().set('trust proxy', 1)
  app.use((req, res, next) => inExpress(req, res, next))
  app.use((_req, res) => void res.send('ok'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ports['Express'] = (server.address() as AddressInfo).port

  const options = {
    limits: () => inNest,
    headers: 'ietf',
    cost: ({ req }: Call) => Number(req.headers['x-cost']),
  }
  @Controller()
  @UseGuards(RateLimitGuard)
  class Everything {
    @Get('{*path}')
    @RateLimit(options as never)
    get(): string {
      return 'ok'
    }
    @Post('{*path}')
    @RateLimit(options as never)
    post(): string {
      return 'ok'
    }
  }
  @Module({ imports: [RateLimitModule.forRoot({})], controllers: [Everything] })
  class Root {}
  inNest = NONE
  const nest = await NestFactory.create(Root, { logger: false })
  nest.getHttpAdapter().getInstance().set('trust proxy', 1)
  await nest.listen(0, '127.0.0.1')
  ports['Nest'] = (nest.getHttpServer().address() as AddressInfo).port

  const fetching = serve({
    fetch: (request, env) => inFetch(request, env as never),
    port: 0,
    hostname: '127.0.0.1',
  })
  await once(fetching, 'listening')
  ports['limited'] = (fetching.address() as AddressInfo).port
  closing.push(
    () => server.close(),
    () => nest.close(),
    () => fetching.close(),
  )
})
afterAll(async () => {
  for (const close of closing) await close()
  for (const store of stores) await store.close()
})

/** Puts the file into force in the three applications. */
function inForce(runs: PolicyFile): void {
  file = runs
  const store = memoryStore({ clock: () => now }) // its time does not run back
  stores.push(store)
  const common = { store, headers: 'ietf' } as const
  const plan = () => PLAN
  inExpress = rateLimit({
    ...common,
    limits: limitsFrom(file, { plan }),
    cost: (req) => Number(req.get('x-cost')),
  })
  inNest = limitsFrom<Call>(JSON.stringify(file), { plan }).map((limit) => ({ ...limit, store }))
  inFetch = limited(() => new Response('ok'), {
    ...common,
    address: (_request: Request, env: Parameters<typeof inFetch>[1]) => env.incoming.socket.remoteAddress,
    trustProxy: 1,
    limits: limitsFrom(readPolicies(JSON.stringify(file)), { plan }),
    cost: (request) => Number(request.headers.get('x-cost')),
  })
}

async function told(framework: string, { method, path, address, team, cost }: Traced): Promise<Told> {
  const headers = {
    'x-forwarded-for': address,
    'x-cost': `${cost}`,
    ...(team !== undefined && { 'x-team': team }),
  }
  const response = await fetch(`http://127.0.0.1:${ports[framework]}${path}`, { method, headers })
  await response.text()
  const items = [...(response.headers.get('ratelimit') ?? '').matchAll(/"([^"]+)";r=(\d+)/g)]
  if (![200, 201, 429].includes(response.status)) throw new Error(`answered ${response.status}`)
  return {
    allowed: response.status !== 429,
    remaining: Object.fromEntries(items.map(([, name, remaining]) => [name, Number(remaining)])),
  }
}

/** A line of a log in JSON, with microseconds. */
function lineOf({ at, method, path, address, team, cost }: Traced): string {
  const time = `${new Date(Math.floor(at / 1000)).toISOString().slice(0, -1)}${String(at % 1000).padStart(3, '0')}Z`
  const headers = { 'x-team': team }
  return `${JSON.stringify({ time, ip: '127.0.0.1', forwarded: address, method, path, status: 200, headers, cost })}\n`
}

/** What `replay --plan pro` says of each call. */
async function replayed(trace: readonly Traced[]): Promise<readonly Told[]> {
  const { limiters } = readPolicies(JSON.stringify(file))
  const selectors = limiters.map(({ by, where, exempt }) => ({ by, where, exempt, orAddress: true }))
  const log = sourceOf('log', trace.map(lineOf).join(''))
  const fields = { forwarded: 'forwarded' }
  const read = await readAll([log], { selectors, trustProxy: 1, cost: 'field:cost', fields, skewMs: 1e9 })
  const calls: (LoggedCall & { place?: number })[] = read.calls.map((call, place) => ({ ...call, place }))
  const all = trace.map((): { allowed: boolean; remaining: Record<string, number> } => ({
    allowed: true,
    remaining: {},
  }))
  // The calls that some limiter counts, by their places in the trace.
  const counted = trace.flatMap((_, i) => (isCounted[i] ? [i] : []))
  const planned = limiters.map((limiter) => ({
    ...limiter,
    policies: limiter.plans?.get(PLAN) ?? limiter.policies,
  }))
  await replay(
    { ...read.reading, resolution: 1, batches: readingOf(calls).batches },
    {
      limiters: planned,
      onDecision(_time, limiter, call, decision) {
        const told = all[counted[(call as (typeof calls)[number]).place!]!]!
        told.allowed &&= decision.allowed
        told.remaining[limiter] = decision.remaining
      },
    },
  )
  return all
}
let isCounted: readonly boolean[] = []

/** Runs a trace through a framework and through replay, and returns how many answers differ. */
async function differences(trace: readonly Traced[], policies: PolicyFile): Promise<readonly unknown[]> {
  const found: unknown[] = []
  for (const framework of ['Express', 'Nest', 'limited']) {
    inForce({
      limiters: Object.fromEntries(
        Object.entries(policies.limiters).map(([name, each]) => [`${name}-${++names}`, each]),
      ),
    })
    const live: Told[] = []
    for (const each of trace) {
      now = each.at
      live.push(await told(framework, each))
    }
    denied += live.filter(({ allowed }) => !allowed).length
    isCounted = live.map(({ remaining }) => Object.keys(remaining).length > 0)
    const wanted = await replayed(trace)
    expect(wanted).toHaveLength(live.length)
    for (const [i, each] of live.entries()) {
      if (JSON.stringify(sorted(each)) !== JSON.stringify(sorted(wanted[i]!)))
        found.push({ framework, i, call: trace[i], live: each, replayed: wanted[i] })
    }
  }
  return found
}
let names = 0
/** Requests that were denied: a law about none would say nothing. */
let denied = 0

const sorted = ({ allowed, remaining }: Told): unknown => [
  allowed,
  Object.entries(remaining).sort(([one], [other]) => (one < other ? -1 : 1)),
]

const ADDRESSES = ['203.0.113.7', '2001:db8:1:2::3', '2001:db8:1:2::4', '203.0.113.9', '198.51.100.4']
const TEAMS = [undefined, 'red', ' red', 'Bearer red', 'blue']
const PATHS = ['/api/a', '/api/b?x=/', '/other', '/api/..%2f']

const spread = fc.array(fc.tuple(fc.nat(4), fc.nat(4), fc.nat(3), fc.boolean()), {
  minLength: 30,
  maxLength: 30,
})

/** Whether the window of a shape is an option, as not that of a calendar is. */
const hasWindow = ({ algorithm }: Shape): boolean => 'window' in (algorithms as Registry)[algorithm]!.options

describe('a policy file in an application is the file in replay', () => {
  it.each(shapes.map((shape) => [shape.title, shape] as const))(
    'under %s',
    async (_, shape) => {
      const scenario = fc.tuple(tiers(shape, 3), starts, traffic({ kinds: { consume: 1 }, most: 30 }), spread)
      await fc.assert(
        fc.asyncProperty(scenario, async ([numbers, start, steps, ways]) => {
          const [one, other, planned] = numbers.map(({ window, ...each }) => [
            { algorithm: shape.algorithm, ...each, ...(hasWindow(shape) && { window: `${window}ms` }) },
          ]) as never[]
          const policies: PolicyFile = {
            limiters: {
              every: {
                policies: one!,
                by: 'ip',
                exempt: { addresses: ['198.51.100.0/24'], keys: ['ip:203.0.113.9'] },
              },
              writes: {
                policies: other!,
                by: 'header:x-team',
                where: 'method=POST,path^=/api',
                plans: { pro: planned! },
              },
            },
          }
          const checked = readPolicies(JSON.stringify(policies))
          expect(checked.errors).toEqual([])
          const session = await Session.open((clock) => memoryStore({ clock }), start)
          const own = checked.limiters[0]!.policies
          const caller = session.caller(own)
          const trace: Traced[] = []
          for (const [i, step] of steps.entries()) {
            const operation = operationOf(step, session.now, own, caller.known)
            await caller.perform(operation)
            const [address, team, path, isPost] = ways[i % ways.length]!
            const call = {
              path: PATHS[path]!,
              address: ADDRESSES[address]!,
              team: i === 0 ? 'red' : TEAMS[team],
              cost: operation.cost,
            }
            // The log has to show where a team stands.
            trace.push({ at: session.now, method: isPost ? 'POST' : 'GET', ...call })
          }
          await session.close()
          expect(await differences(trace, policies)).toEqual([])
        }),
        { numRuns: RUNS, endOnFailure: true },
      )
    },
    60_000,
  )

  it('in a recorded log of 300 calls', async () => {
    const policies: PolicyFile = {
      limiters: {
        api: { policies: [{ algorithm: 'gcra', limit: 20, window: '1s', burst: 4 }] },
        login: {
          policies: [{ algorithm: 'slidingLog', limit: 3, window: '2s' }],
          where: 'path=/login,method=POST',
          exempt: { addresses: ['10.0.0.0/8'] },
        },
        teams: {
          policies: [{ algorithm: 'fixedWindow', limit: 9, window: '1s' }],
          by: 'header:x-team',
          where: 'header:x-team!=',
        },
      },
    }
    let at = 1_760_104_536_000_000
    const trace = Array.from({ length: 300 }, (_, i): Traced => {
      at += ((i * 7919) % 61) * 1000
      const address = i % 3 === 0 ? '203.0.113.7' : i % 3 === 1 ? `2001:db8:${i % 4}::${i}` : '10.1.2.3'
      const [method, path] = i % 5 < 2 ? (['POST', '/login?next=/'] as const) : (['GET', '/'] as const)
      return { at, method, path, address, team: i % 7 === 0 ? 'red' : undefined, cost: 1 }
    })
    denied = 0
    expect(await differences(trace, policies)).toEqual([])
    expect(denied).toBeGreaterThan(50)
  }, 60_000)

  it('denies under the shapes as a whole', () => {
    expect(denied).toBeGreaterThan(0)
  })
})
