import { createLimiter, memoryStore, type Store, tokenBucket } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import express, { type Request, Router } from 'express'
import * as graphql from 'graphql'
import { costOf, type Operation } from './operation-cost.js'

/** `POST /graphql`: 5,000 units a minute for each caller, 1,000 of them at once. What costs more than that never passes. */
export function graphqlApi(
  schema: graphql.GraphQLSchema,
  key: (req: Request) => string,
  store: Store = memoryStore(),
): Router {
  const policies = [tokenBucket({ limit: 5000, window: '1m', capacity: 1000 })]
  const limiter = createLimiter({ name: 'graphql', policies, store })
  const asked = new WeakMap<Request, Operation | readonly graphql.GraphQLError[]>()
  // What is invalid costs a unit: reading it was work too.
  const cost = (req: Request): number => {
    const operation = asked.get(req)!
    return 'document' in operation ? costOf(operation, schema) : 1
  }
  const router = Router()
  router.use('/graphql', express.json({ limit: '100kb' }), (req, _res, next) => {
    asked.set(req, operationIn(req.body, schema))
    next()
  })
  router.post('/graphql', rateLimit({ limiter, key, cost }), async (req, res) => {
    const operation = asked.get(req)!
    if (!('document' in operation)) return void res.status(400).json({ errors: operation })
    const { document, inputs, operation: named } = operation
    const operationName = named.name?.value
    res.json(await graphql.execute({ schema, document, variableValues: inputs, operationName }))
  })
  return router
}

/** Validation also refuses fragments that spread themselves. */
function operationIn(
  body: unknown,
  schema: graphql.GraphQLSchema,
): Operation | readonly graphql.GraphQLError[] {
  const { query, variables, operationName } = (body ?? {}) as Readonly<Record<string, unknown>>
  try {
    const document = graphql.parse(String(query), { maxTokens: 5000 })
    const errors = graphql.validate(schema, document)
    if (errors.length > 0) return errors
    const operation = graphql.getOperationAST(document, operationName as string | undefined)
    if (!operation) return [new graphql.GraphQLError('which operation?')]
    const inputs = (variables ?? {}) as Readonly<Record<string, unknown>>
    // With the defaults of the operation, which would be a way around the cost otherwise.
    const values = graphql.getVariableValues(schema, operation.variableDefinitions ?? [], inputs)
    return values.errors ?? { document, operation, inputs, variables: values.coerced }
  } catch (error) {
    return [error instanceof graphql.GraphQLError ? error : new graphql.GraphQLError('no operation')]
  }
}
