import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo'
import { ExecutionContextHost } from '@nestjs/core/internal'
import { GraphQLModule } from '@nestjs/graphql'
import { createLimiter, createSemaphore, type Limiter, slidingLog } from '@sluice/core'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import {
  type Call,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptions,
} from '../src/index.js'
import { ask, cost, operationsLimiter, serveItems, typeDefs } from './graphql-site.js'
import { closeApps, serve as serveModule } from './served.js'

let limiter: Limiter
const onPrice = jest.fn()

beforeEach(() => {
  limiter = operationsLimiter()
})
afterEach(closeApps)

describe('GraphQL', () => {
  it('charges a query what it asks for, and sets the headers', async () => {
    const { headers, body } = await ask(await serve(), '{ items(first: 3) { id } }')
    expect(body.data.items).toHaveLength(3)
    expect(headers.get('x-ratelimit-remaining')).toBe('7')
  })

  it('charges a mutation its cost', async () => {
    const { headers, body } = await ask(await serve(), 'mutation { buy(id: 1) }')
    expect(body.data).toEqual({ buy: true })
    expect(headers.get('x-ratelimit-remaining')).toBe('5')
  })

  it('counts each operation of a request under any alias, without a warning', async () => {
    const warned = jest.fn()
    limiter.on('warning', warned)
    const query = '{ a: items(first: 4) { id } b: items(first: 4) { id } c: items(first: 2) { id } }'
    const { headers } = await ask(await serve(), query)
    expect(headers.get('x-ratelimit-remaining')).toBe('0')
    expect(warned).not.toHaveBeenCalled()
  })

  it('denies one operation with an error that says how long to wait, and serves the other', async () => {
    const { status, headers, body } = await ask(await serve(), '{ items(first: 11) { id } hello }')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(body.data).toEqual({ items: null, hello: 'hello' })
    expect(body.errors[0]).toMatchObject({
      path: ['items'],
      extensions: { code: 'TOO_MANY_REQUESTS', retryAfterMs: null, problem: { status: 429 } },
    })
    const origin = await serve({ limiter, cost: () => 5 })
    const spent = await ask(origin, 'mutation { buy(id: 1) }')
    expect(spent.headers.get('retry-after')).toBeNull()
    const denied = await ask(origin, 'mutation { buy(id: 1) }')
    expect(denied.headers.get('retry-after')).toBe('60')
    expect(denied.body.errors[0]).toMatchObject({
      message: 'Too many requests. Try again in 60 seconds.',
      extensions: { code: 'TOO_MANY_REQUESTS', retryAfterMs: 60_000 },
    })
  })

  it('shows the most restrictive limit of several operations, in any order', async () => {
    const tight = { name: 'hello', limit: 2, window: '1m' } as const
    const origin = await serve({ limiter, cost: () => 1 }, [], tight)
    for (const query of ['{ hello ping }', '{ ping hello }']) {
      expect((await ask(origin, query)).headers.get('x-ratelimit-limit')).toBe('2')
    }
  })

  it('decides by an operation that got no permit only those that need the same permit', async () => {
    const semaphore = createSemaphore({ name: 'reports', limit: 1 })
    const key = ({ context }: Call) => String(context.getArgByIndex(1).first)
    const held = await semaphore.acquire('1')
    const origin = await serve({
      limits: [
        { limiter, cost: () => 1 },
        { semaphore, key },
      ],
    })
    const aliases = Array.from({ length: 20 }, (_, i) => `a${i}: items(first: 1) { id }`) // of which 16 ask at once
    const { body } = await ask(origin, `{ ${aliases.join(' ')} b: items(first: 2) { id } }`)
    await held.release()
    expect([body.errors.length, body.data.b]).toEqual([20, [{ id: 0 }, { id: 1 }]])
    expect((await limiter.peek('ip:127.0.0.1')).remaining).toBe(9)
  })

  it('counts fields of a result only for limits of their own', async () => {
    const limits = [
      { limiter: createLimiter({ name: 'all', policies: [slidingLog({ limit: 9, window: '1m' })] }) },
    ]
    const { headers, body } = await ask(
      await serve({ limiter, cost }, limits),
      '{ items(first: 3) { price } }',
    )
    expect(headers.get('x-ratelimit-remaining')).toBe('7')
    expect(body.data.items).toEqual([{ price: 1 }, { price: 1 }, { price: 1 }])
    expect(onPrice.mock.calls.map(([{ decision }]) => decision.allowed)).toEqual([true, true, true])
  })

  it('sets headers on the reply in the context of a server on Fastify, but not its type', async () => {
    const imports = [RateLimitModule.forRoot({ limits: [{ limiter, cost: () => 11 }] })]
    const { app } = await serveModule({ imports })
    const reply = { raw: {}, sent: false, header: jest.fn() }
    const context = { req: { ip: '192.0.2.1', raw: {} }, reply }
    const run = new ExecutionContextHost([undefined, {}, context, { path: {} }], class {}, () => {})
    run.setType('graphql')
    await expect(app.get(RateLimitGuard).canActivate(run)).rejects.toThrow(RateLimitException)
    const names = reply.header.mock.calls.map(([name]) => name)
    expect(names).toEqual(expect.arrayContaining(['X-RateLimit-Remaining', 'Cache-Control']))
    expect(names).not.toContain('Content-Type')
  })

  it('counts a subscription once, by the address of its connection, when it begins', async () => {
    const keys: string[] = []
    limiter.on('decision', ({ key }) => void keys.push(key))
    const client = createClient({ url: `ws://${await serve()}/graphql`, webSocketImpl: WebSocket })
    const run = async (count: number) => {
      const seen: unknown[] = []
      for await (const { data, errors } of client.iterate({
        query: `subscription { ticks(count: ${count}) }`,
      })) {
        seen.push(errors ? errors[0]!.extensions!['code'] : data!['ticks'])
      }
      return seen
    }
    expect(await run(6)).toEqual([1, 2, 3, 4, 5, 6])
    expect(await run(5)).toEqual(['TOO_MANY_REQUESTS'])
    expect(await run(4)).toEqual([1, 2, 3, 4])
    await client.dispose()
    expect(new Set(keys)).toEqual(new Set(['ip:127.0.0.1']))
  })
})

function serve(
  options: RateLimitOptions = { limiter, cost },
  ofModule: readonly RateLimitOptions[] = [],
  ofHello: RateLimitOptions = { limit: 99, window: '1m' },
): Promise<string> {
  onPrice.mockClear()
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    typeDefs,
    subscriptions: { 'graphql-ws': true },
    fieldResolverEnhancers: ['guards'],
    graphiql: false,
  })
  return serveItems(graphql, undefined, options, { ofModule, ofHello, onPrice })
}
