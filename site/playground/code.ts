import type { Column } from './scenario.js'

export const ADAPTERS = ['core', 'express', 'fastify', 'hono', 'koa', 'nest', 'outbound'] as const
export type Adapter = (typeof ADAPTERS)[number]

/** The limits of a column as TypeScript, to be pasted. */
export function codeOf(column: Column, adapter: Adapter, cost: number): string {
  const policies = column.policies.map(({ algorithm, ...options }) => `${algorithm}(${literal(options)})`)
  const list =
    policies.length === 1 ? `[${policies[0]}]` : `[\n${policies.map((each) => `  ${each},\n`).join('')}]`
  const factories = [...new Set(column.policies.map(({ algorithm }) => String(algorithm)))].sort()
  const penalty = column.penalty ? `, penalty: ${literal(column.penalty)}` : ''
  const wait = column.maxWait === undefined ? '' : `maxWait: ${value(column.maxWait)}`
  const costs = cost === 1 ? '' : `cost: ${cost}`
  const call = [costs, wait].filter(Boolean).join(', ')
  const options =
    ['policies', wait, cost === 1 ? '' : `cost: () => ${cost}`].filter(Boolean).join(', ') + penalty
  const named = `const policies = ${list}\n`
  const imports = (...names: readonly string[]) =>
    `import { ${[...names, ...factories].join(', ')} } from '@sluice/core'\n`
  switch (adapter) {
    case 'core': {
      const verb = column.maxWait === undefined ? 'consume' : 'acquire'
      const made = `const limiter = createLimiter({ policies${penalty} })\n`
      const asked = `const decision = await limiter.${verb}('user:42'${call && `, { ${call} }`})\n`
      const then = 'if (!decision.allowed) console.log(`try again in ${decision.retryAfterMs} ms`)\n'
      return `${imports('createLimiter')}\n${named}${made}${asked}${then}`
    }
    case 'express':
      return `import express from 'express'\n${imports()}import { rateLimit } from '@sluice/express'\n\n${named}const app = express()\napp.use(rateLimit({ ${options} }))\napp.listen(3000)\n`
    case 'koa':
      return `import Koa from 'koa'\n${imports()}import { rateLimit } from '@sluice/koa'\n\n${named}const app = new Koa()\napp.use(rateLimit({ ${options} }))\napp.listen(3000)\n`
    case 'fastify':
      return `import fastify from 'fastify'\n${imports()}import { rateLimit } from '@sluice/fastify'\n\n${named}const app = fastify()\nawait app.register(rateLimit, { ${options} })\napp.get('/', () => 'hello')\nawait app.listen({ port: 3000 })\n`
    case 'hono':
      return `import { serve } from '@hono/node-server'\nimport { getConnInfo } from '@hono/node-server/conninfo'\n${imports()}import { rateLimit } from '@sluice/hono'\nimport { Hono } from 'hono'\n\n${named}const app = new Hono().use(rateLimit({ ${options}, connInfo: getConnInfo }))\nserve(app)\n`
    case 'nest':
      return `import { Module } from '@nestjs/common'\nimport { APP_GUARD } from '@nestjs/core'\n${imports()}import { RateLimitGuard, RateLimitModule } from '@sluice/nest'\n\n${named}const limits = RateLimitModule.forRoot({ limits: [{ ${options} }] })\n@Module({ imports: [limits], providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }] })\nexport class AppModule {}\n`
    case 'outbound': {
      const given = ['limiter', wait, cost === 1 ? '' : `cost: () => ${cost}`].filter(Boolean).join(', ')
      return `${imports('createLimiter')}import { limitFetch } from '@sluice/outbound'\n\n${named}const limiter = createLimiter({ policies${penalty} })\nconst limitedFetch = limitFetch(fetch, { ${given} })\nconst response = await limitedFetch('https://api.example.com/orders')\n`
    }
  }
}

function literal(options: object): string {
  const entries = Object.entries(options).map(([name, each]) => `${name}: ${value(each)}`)
  return `{ ${entries.join(', ')} }`
}

function value(given: unknown): string {
  return typeof given === 'string' ? `'${given.replace(/[\\']/g, '\\$&')}'` : String(given)
}
