import { APP_GUARD } from '@nestjs/core'
import { Args, GraphQLModule, Mutation, Query, ResolveField, Resolver, Subscription } from '@nestjs/graphql'
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { type Call, RateLimit, RateLimitGuard, RateLimitModule } from '../src/index.js'
import { closeApps, serve as serveModule } from './served.js'

const typeDefs = `
  type Item { id: Int!  price: Int! }
  type Query { items(first: Int!): [Item!]  hello: String! }
  type Mutation { buy(id: Int!): Boolean! }
  type Subscription { ticks(count: Int!): Int! }
`

const cost = ({ context }: Call) => {
  const { first, count } = context.getArgByIndex(1) as { first?: number; count?: number }
  return first ?? count ?? 5
}

let limiter: Limiter
let keys: Set<string>

beforeEach(() => {
  const policies = [slidingLog({ limit: 10, window: '1m' })]
  limiter = createLimiter({ name: 'operations', policies, store: memoryStore({ clock: () => 0 }) })
  keys = new Set()
  limiter.on('decision', ({ key }) => void keys.add(key))
})
afterEach(closeApps)

describe('GraphQL by Mercurius', () => {
  it('charges queries and mutations what they ask for, by the address of the caller, and sets the headers', async () => {
    const origin = await serve()
    const { headers, body } = await ask(origin, '{ items(first: 3) { id price } }')
    expect(body.data.items).toHaveLength(3)
    expect(headers.get('x-ratelimit-remaining')).toBe('7')
    expect((await ask(origin, 'mutation { buy(id: 1) }')).headers.get('x-ratelimit-remaining')).toBe('2')
    expect(keys).toEqual(new Set(['ip:127.0.0.1']))
  })

  it('denies an operation with an error that says how long to wait', async () => {
    const origin = await serve()
    await ask(origin, '{ items(first: 10) { id } }')
    const { headers, body } = await ask(origin, 'mutation { buy(id: 1) }')
    expect(headers.get('retry-after')).toBe('60')
    expect(body.errors[0]).toMatchObject({
      message: 'Too many requests. Try again in 60 seconds.',
      extensions: { code: 'TOO_MANY_REQUESTS', retryAfterMs: 60_000, problem: { status: 429 } },
    })
  })

  it('counts a subscription once, by the address of its connection, when it begins', async () => {
    const client = createClient({ url: `ws://${await serve()}/graphql`, webSocketImpl: WebSocket })
    const run = async (count: number) => {
      const seen: unknown[] = []
      const query = `subscription { ticks(count: ${count}) }`
      try {
        for await (const { data, errors } of client.iterate({ query }))
          seen.push(errors ? errors[0]!.extensions!['code'] : data!['ticks'])
      } catch (error) {
        // Mercurius ends one that cannot begin with a message of its own.
        seen.push(...(error as { extensions: { code: string } }[]).map(({ extensions }) => extensions?.code))
      }
      return seen
    }
    expect(await run(6)).toEqual([1, 2, 3, 4, 5, 6])
    expect(await run(5)).toEqual(['TOO_MANY_REQUESTS'])
    expect(await run(4)).toEqual([1, 2, 3, 4])
    await client.dispose()
    expect(keys).toEqual(new Set(['ip:127.0.0.1']))
  })
})

async function serve(): Promise<string> {
  @Resolver('Item')
  @RateLimit({ limiter, cost })
  class Items {
    @Query() items(@Args('first') first: number) {
      return Array.from({ length: first }, (_, id) => ({ id }))
    }
    @Query() hello() {
      return 'hello'
    }
    @Mutation() buy() {
      return true
    }
    @Subscription() async *ticks(@Args('count') count: number) {
      for (let ticks = 1; ticks <= count; ticks++) yield { ticks }
    }
    @ResolveField() price() {
      return 1
    }
  }
  const graphql = GraphQLModule.forRoot<MercuriusDriverConfig>({
    driver: MercuriusDriver,
    typeDefs,
    subscription: { fullWsTransport: true },
    fieldResolverEnhancers: ['guards'],
    graphiql: false,
  })
  const imports = [RateLimitModule.forRoot({}), graphql]
  const providers = [Items, { provide: APP_GUARD, useClass: RateLimitGuard }]
  return (await serveModule({ imports, providers }, new FastifyAdapter())).origin
}

async function ask(origin: string, query: string) {
  const res = await fetch(`http://${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ query }),
  })
  return { headers: res.headers, body: (await res.json()) as any }
}
