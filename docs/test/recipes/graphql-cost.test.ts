import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import express from 'express'
import * as graphql from 'graphql'
import { graphqlApi } from '../../recipes/graphql-cost.js'
import { costOf } from '../../recipes/operation-cost.js'
import { closeServers, serve } from './served.js'

const schema = graphql.buildSchema(`
  interface Named { name: String! }
  type User implements Named { name: String!  orders(first: Int = 50): [Order!]! }
  type Order implements Named { name: String!  buyer: User!  tags: [Tag!]! }
  type Tag { text: String! }
  union Found = User | Order
  type Query {
    user: User
    users(first: Int, last: Int): [User!]
    search(limit: Int!): [Found!]!
    named: [Named!]!
    hello: String!
  }
  type Mutation { buy(id: ID!): Order! }
`)

function cost(query: string, values: Record<string, unknown> = {}): number {
  const document = graphql.parse(query)
  expect(graphql.validate(schema, document)).toEqual([])
  const operation = graphql.getOperationAST(document)!
  const variables = graphql.getVariableValues(schema, operation.variableDefinitions ?? [], values).coerced!
  return costOf({ document, operation, variables }, schema)
}

describe('the cost of a GraphQL operation', () => {
  it.each<[query: string, units: number, values?: Record<string, unknown>]>([
    ['{ hello }', 1],
    ['{ a: hello b: hello c: hello }', 3],
    ['{ __typename __schema { types { name } } }', 2],
    ['{ user { name } }', 2],
    ['{ users(first: 10) { name } }', 11],
    ['{ users(last: 3) { name } }', 4],
    ['{ users { name } }', 21],
    ['{ users(first: 0, last: 1000) { name } }', 1001],
    ['{ users(first: null) { name } }', 21],
    ['query ($n: Int) { users(first: $n) { name } }', 31, { n: 30 }],
    ['query ($n: Int = 40) { users(first: $n) { name } }', 41],
    ['{ users(first: 10) { orders(first: 5) { name tags { text } } } }', 1 + 10 * (1 + 5 * (1 + 1 + 20))],
    ['{ user { orders { name } } }', 1 + 1 + 50],
    ['{ users(first: 100000000) { name } }', 1001],
    ['{ users(first: -5) { name } }', 1001],
    ['{ search(limit: 2) { ... on User { name } ... on Order { name buyer { name } } } }', 1 + 2 * (1 + 3)],
    ['{ named { name ... { name } } }', 1 + 20 * 2],
    ['{ user { ...U ...U } } fragment U on User { name orders(first: 2) { name } }', 1 + 2 * (1 + 3)],
    ['mutation { buy(id: 1) { name } }', 2],
    ['query ($n: Int = 5) { search(limit: $n) { __typename } }', 2, { n: null }],
  ])('of %s is %i', (query, units, values = {}) => {
    expect(cost(query, values)).toBe(units)
  })

  it('of nested lists and of fragments in fragments is bounded, and found at once', () => {
    const deep = '{ orders(first: 1000) { buyer '.repeat(12) + '{ name }' + ' } }'.repeat(12)
    expect(cost(`{ user ${deep} }`)).toBe(2 ** 31)
    const bomb = Array.from({ length: 60 }, (_, i) => `fragment F${i} on User { ...F${i + 1} ...F${i + 1} }`)
    expect(cost(`{ user { ...F0 } } ${bomb.join(' ')} fragment F60 on User { name }`)).toBe(2 ** 31)
  })
})

describe('the recipe for GraphQL', () => {
  let clock: FakeClock
  let origin: string
  beforeEach(async () => {
    clock = new FakeClock()
    const store = memoryStore({ clock: clock.now })
    origin = await serve(express().use(graphqlApi(schema, (req) => req.get('x-user') ?? 'nobody', store)))
  })
  afterEach(closeServers)

  const ask = async (body: unknown) => {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': 'ann' },
      body: JSON.stringify(body),
    })
    const { data, errors } = (await response.json()) as { data?: unknown; errors?: unknown[] }
    const { status, headers } = response
    return {
      status,
      left: headers.get('x-ratelimit-remaining'),
      retry: headers.get('retry-after'),
      data,
      errors,
    }
  }

  it('charges an operation its cost, and denies it without running it when too little is left', async () => {
    expect(await ask({ query: '{ user { name } }' })).toMatchObject({
      status: 200,
      left: '998',
      data: { user: null },
    })
    expect(await ask({ query: '{ users(first: 900) { name } }' })).toMatchObject({ status: 200, left: '97' })
    expect(await ask({ query: '{ users(first: 100) { name } }' })).toMatchObject({ status: 429, retry: '1' })
    clock.pass(1000)
    expect(await ask({ query: '{ users(first: 100) { name } }' })).toMatchObject({ status: 200 })
  })

  it('says of an operation that costs more than there ever is that no wait helps', async () => {
    const query = '{ users(first: 100) { orders(first: 100) { name } } }'
    expect(await ask({ query })).toMatchObject({ status: 429, retry: null })
  })

  it('takes the operation that is named, with its variables', async () => {
    const query = 'query A { hello } query B($n: Int) { users(first: $n) { name } }'
    expect(await ask({ query, operationName: 'B', variables: { n: 9 } })).toMatchObject({
      status: 200,
      left: '990',
    })
    expect(await ask({ query })).toMatchObject({ status: 400, left: '989' })
  })

  it.each([
    [undefined],
    [{ query: '{' }],
    [{ query: '{ nothing }' }],
    [{ query: '{ user { ...F } } fragment F on User { ...F }' }],
    [{ query: 'query ($n: Int!) { users(first: $n) { name } }' }],
    [{ query: `{ ${'hello '.repeat(5001)} }` }],
  ])('charges a unit for what is no operation: %j', async (body) => {
    const { status, left, errors } = await ask(body)
    expect([status, left, errors!.length > 0]).toEqual([400, '999', true])
  })
})
