import { type Column, readScenario, type Typed, type Values } from './scenario.js'

/** The imports beside core, and the program; `$` marks what a column has beside its policies. */
const TABLE = `
express | { rateLimit } from '@sluice/express'; express from 'express' | const app = express(); app.use(rateLimit({ policies$OPTIONS })); app.listen(3000)
fastify | { rateLimit } from '@sluice/fastify'; fastify from 'fastify' | const app = fastify(); await app.register(rateLimit, { policies$OPTIONS }); app.get('/', () => 'hello'); await app.listen({ port: 3000 })
hono | { serve } from '@hono/node-server'; { getConnInfo } from '@hono/node-server/conninfo'; { rateLimit } from '@sluice/hono'; { Hono } from 'hono' | const app = new Hono().use(rateLimit({ policies$OPTIONS, connInfo: getConnInfo })); serve({ fetch: app.fetch, port: 3000 })
koa | { rateLimit } from '@sluice/koa'; Koa from 'koa' | const app = new Koa(); app.use(rateLimit({ policies$OPTIONS })); app.listen(3000)
nest | { Module } from '@nestjs/common'; { APP_GUARD } from '@nestjs/core'; { RateLimitGuard, RateLimitModule } from '@sluice/nest' | const limits = RateLimitModule.forRoot({ limits: [{ policies$OPTIONS }] }); @Module({ imports: [limits], providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }] }); export class AppModule {}
outbound | { limitFetch } from '@sluice/outbound' | const limiter = createLimiter({ policies$LIMITER }); const limitedFetch = limitFetch(fetch, { limiter$CALL }); const response = await limitedFetch('https://api.example.com/orders')
core |  | const limiter = createLimiter({ policies$LIMITER }); const decision = await limiter.$ASK('user:42'$GIVEN); if (!decision.allowed) console.log(\`try again in \${decision.retryAfterMs} ms\`)
`
const PROGRAMS = new Map(
  TABLE.trim()
    .split('\n')
    .map((line) => line.split(' | '))
    .map(([adapter = '', ...parts]) => [adapter, parts.map((part) => part.split('; '))]),
)
export const ADAPTERS = [...PROGRAMS.keys()]

/**
 * The limits of a column as a program of TypeScript, to be pasted. Undefined unless every field is right: a link may have been made
 * by a stranger, and what is no name of an option would be code.
 */
export function codeOf(column: Column, adapter: string, given: Typed): string | undefined {
  const { scenario, problems } = readScenario({ settings: { kind: 'even', cost: given }, columns: [column] })
  const program = PROGRAMS.get(adapter)
  if (!program || Object.keys(problems).length > 0) return undefined
  return programOf(column, program, scenario.settings.cost)
}

function programOf({ policies, wait, penalty, leases }: Column, parts: string[][], cost: number): string {
  const [imports = [], body = []] = parts
  const waits = wait ? `, ${listed(wait)}` : ''
  const costs = cost === 1 ? '' : `, cost: () => ${cost}`
  const blocks = penalty ? `, penalty: { ${listed(penalty)} }` : ''
  const options = listed({ ...(cost !== 1 && { cost }), ...wait })
  const marks: Readonly<Record<string, string>> = {
    $OPTIONS: waits + costs + blocks,
    $LIMITER: blocks,
    $CALL: waits + costs,
    $ASK: wait ? 'acquire' : 'consume',
    $GIVEN: options && `, { ${options} }`,
  }
  const filled = body.map((line) => line.replace(/\$[A-Z]+/g, (mark) => marks[mark]!))
  const names = new Set(policies.map(({ algorithm }) => String(algorithm)))
  if (filled[0]!.includes('createLimiter')) names.add('createLimiter')
  const lines = [`{ ${[...names].sort().join(', ')} } from '@sluice/core'`, ...imports.filter(Boolean)]
  // A Temporal for the runtimes that have none.
  if (policies.some(({ every }) => every !== undefined)) lines.unshift("'@sluice/calendar'")
  const calls = policies.map(policyCode)
  const { processes: _, ...lent } = leases ?? {}
  const unleased = `// No leases: they need a shared store. createLimiter({ name, policies, store, leases: { ${listed(lent)} } })`
  const list = calls.length === 1 ? `[${calls[0]}]` : `[\n${calls.map((each) => `  ${each},\n`).join('')}]`
  const program = [...(leases ? [unleased] : []), `const policies = ${list}`, ...filled]
  return [...lines.map((each) => `import ${each}`), '', ...program, ''].join('\n')
}

/** A policy as its factory is called. */
export function policyCode({ algorithm, ...options }: Values): string {
  return `${algorithm}({ ${listed(options)} })`
}

function listed(options: Values): string {
  const entries = Object.entries(options).map(([name, each]) => `${name}: ${value(each)}`)
  return entries.join(', ')
}

/** A text in quotes, with which no line ends, and no script of a page that it is pasted into. */
function value(given: unknown): string {
  if (typeof given !== 'string') return String(given)
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `'${given.replace(/[\\']/g, '\\$&').replace(/[^ -~]|<(?=[/!])/g, escape)}'`
}
