import type { DynamicModule } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { Args, Mutation, Query, ResolveField, Resolver, Subscription } from '@nestjs/graphql'
import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { type Call, RateLimit, RateLimitGuard, RateLimitModule, type RateLimitOptions } from '../src/index.js'
import { serve } from './served.js'

export const typeDefs = `
  type Item { id: Int!  price: Int! }
  type Query { items(first: Int!): [Item!]  hello: String!  ping: String! }
  type Mutation { buy(id: Int!): Boolean! }
  type Subscription { ticks(count: Int!): Int! }
`

/** What each kind of operation costs. */
export const cost = ({ context }: Call) => {
  const { first, count } = context.getArgByIndex(1) as { first?: number; count?: number }
  return first ?? count ?? 5
}

/** Ten units a minute, on a clock that stands still. */
export function operationsLimiter(): Limiter {
  const policies = [slidingLog({ limit: 10, window: '1m' })]
  return createLimiter({ name: 'operations', policies, store: memoryStore({ clock: () => 0 }) })
}

/** What a site limits beside its operations. */
export interface SiteLimits {
  readonly ofModule?: readonly RateLimitOptions[]
  readonly ofHello?: RateLimitOptions
  readonly onPrice?: () => void
}

/** Serves items with a limit of `options` under a driver of GraphQL. */
export async function serveItems(
  graphql: DynamicModule,
  http: Parameters<typeof serve>[1],
  options: RateLimitOptions,
  { ofModule = [], ofHello = { limit: 99, window: '1m' }, onPrice = () => {} }: SiteLimits = {},
): Promise<string> {
  const ofPrice = createLimiter({ name: 'price', policies: [slidingLog({ limit: 99, window: '1m' })] })
  ofPrice.on('decision', onPrice)

  @Resolver('Item')
  @RateLimit(options)
  class Items {
    @Query() items(@Args('first') first: number) {
      return Array.from({ length: first }, (_, id) => ({ id }))
    }
    @Query() @RateLimit(ofHello) hello() {
      return 'hello'
    }
    @Query() ping() {
      return 'pong'
    }
    @Mutation() buy() {
      return true
    }
    @Subscription() async *ticks(@Args('count') count: number) {
      for (let ticks = 1; ticks <= count; ticks++) yield { ticks }
    }
    @ResolveField() @RateLimit({ limiter: ofPrice }) price() {
      return 1
    }
  }
  const imports = [RateLimitModule.forRoot({ limits: ofModule }), graphql]
  const providers = [Items, { provide: APP_GUARD, useClass: RateLimitGuard }]
  return (await serve({ imports, providers }, http)).origin
}

export async function ask(origin: string, query: string) {
  const res = await fetch(`http://${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ query }),
  })
  return { status: res.status, headers: res.headers, body: (await res.json()) as any }
}
