import { GraphQLModule } from '@nestjs/graphql'
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Limiter } from '@sluice/core'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { ask, cost, operationsLimiter, serveItems, typeDefs } from './graphql-site.js'
import { closeApps } from './served.js'

let limiter: Limiter
let keys: Set<string>

beforeEach(() => {
  limiter = operationsLimiter()
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

function serve(): Promise<string> {
  const graphql = GraphQLModule.forRoot<MercuriusDriverConfig>({
    driver: MercuriusDriver,
    typeDefs,
    subscription: { fullWsTransport: true },
    fieldResolverEnhancers: ['guards'],
    graphiql: false,
  })
  return serveItems(graphql, new FastifyAdapter(), { limiter, cost })
}
