import type { Column, Values } from './scenario.js'

export const ADAPTERS = ['express', 'fastify', 'hono', 'koa', 'nest', 'outbound', 'core'] as const
export type Adapter = (typeof ADAPTERS)[number]

/** The limits of a column as a program of TypeScript, to be pasted. */
export function codeOf({ policies, maxWait, penalty }: Column, adapter: Adapter, cost: number): string {
  const calls = policies.map(policyCode)
  const list = calls.length === 1 ? `[${calls[0]}]` : `[\n${calls.map((each) => `  ${each},\n`).join('')}]`
  const factories = [...new Set(policies.map(({ algorithm }) => String(algorithm)))].sort()
  const wait = maxWait === undefined ? '' : `maxWait: ${value(maxWait)}`
  const costs = cost === 1 ? '' : adapter === 'core' ? `cost: ${cost}` : `cost: () => ${cost}`
  const blocks = penalty && `penalty: ${literal(penalty)}`
  const all = (...options: readonly (string | undefined)[]): string =>
    `{ ${options.filter(Boolean).join(', ')} }`
  const options = all('policies', wait, costs, blocks)
  const created = `const limiter = createLimiter(${all('policies', blocks)})\n`
  const asked = wait || costs ? `, ${all(costs, wait)}` : ''
  const programs: Record<Adapter, readonly [imports: string, body: string]> = {
    express: [
      `import { rateLimit } from '@sluice/express'\nimport express from 'express'\n`,
      `const app = express()\napp.use(rateLimit(${options}))\napp.listen(3000)\n`,
    ],
    fastify: [
      `import { rateLimit } from '@sluice/fastify'\nimport fastify from 'fastify'\n`,
      `const app = fastify()\nawait app.register(rateLimit, ${options})\napp.get('/', () => 'hello')\nawait app.listen({ port: 3000 })\n`,
    ],
    hono: [
      `import { serve } from '@hono/node-server'\nimport { getConnInfo } from '@hono/node-server/conninfo'\nimport { rateLimit } from '@sluice/hono'\nimport { Hono } from 'hono'\n`,
      `const app = new Hono().use(rateLimit(${all('policies', wait, costs, blocks, 'connInfo: getConnInfo')}))\nserve({ fetch: app.fetch, port: 3000 })\n`,
    ],
    koa: [
      `import { rateLimit } from '@sluice/koa'\nimport Koa from 'koa'\n`,
      `const app = new Koa()\napp.use(rateLimit(${options}))\napp.listen(3000)\n`,
    ],
    nest: [
      `import { Module } from '@nestjs/common'\nimport { APP_GUARD } from '@nestjs/core'\nimport { RateLimitGuard, RateLimitModule } from '@sluice/nest'\n`,
      `const limits = RateLimitModule.forRoot({ limits: [${options}] })\n@Module({ imports: [limits], providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }] })\nexport class AppModule {}\n`,
    ],
    outbound: [
      `import { createLimiter } from '@sluice/core'\nimport { limitFetch } from '@sluice/outbound'\n`,
      `${created}const limitedFetch = limitFetch(fetch, ${all('limiter', wait, costs)})\nconst response = await limitedFetch('https://api.example.com/orders')\n`,
    ],
    core: [
      `import { createLimiter } from '@sluice/core'\n`,
      `${created}const decision = await limiter.${wait ? 'acquire' : 'consume'}('user:42'${asked})\nif (!decision.allowed) console.log(\`try again in \${decision.retryAfterMs} ms\`)\n`,
    ],
  }
  const [imports, body] = programs[adapter]
  return `import { ${factories.join(', ')} } from '@sluice/core'\n${imports}\nconst policies = ${list}\n${body}`
}

/** A policy as its factory is called. */
export function policyCode({ algorithm, ...options }: Values): string {
  return `${algorithm}(${literal(options)})`
}

function literal(options: Values): string {
  const entries = Object.entries(options).map(([name, each]) => `${name}: ${value(each)}`)
  return `{ ${entries.join(', ')} }`
}

function value(given: unknown): string {
  return typeof given === 'string' ? `'${given.replace(/[\\']/g, '\\$&')}'` : String(given)
}
