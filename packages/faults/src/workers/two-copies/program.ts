import { createRequire } from 'node:module'
import { adapters } from './adapters.js'
import type { Copy, Pair } from './copy.js'
import { contracts, limiters } from './limiters.js'
import { outbound } from './outbound.js'
import { stores } from './stores.js'

/*
 * Prints what was checked for every ordered pair of copies of Sluice in this process, and what was wrong:
 * { checks: { adapters: 60, ... }, wrong: ['...'] }.
 */
export interface Seen {
  readonly checks: Readonly<Record<string, number>>
  readonly wrong: readonly string[]
}

const [, , host, port] = process.argv
const checks: Record<string, number> = {}
const wrong: string[] = []

const require = createRequire(import.meta.url)
const loads = {
  ESM: (name: string) => import(name) as Promise<never>,
  CommonJS: (name: string) => Promise.resolve(require(name) as never),
  nested: await loaderOf('./nested/load.mjs'),
}
const copies = await Promise.all(Object.entries(loads).map(([name, load]) => copyOf(name, load)))
const next = await copyOf('the next contract', await loaderOf('./next/load.mjs'))

for (const [made, used] of copies.flatMap((one) => copies.map((other): Pair => [one, other]))) {
  if (made === used) continue
  const redis = { host: host!, port: Number(port) }
  for (const [kind, cases] of Object.entries({ adapters, limiters, stores, outbound })) {
    for (const [title, run] of Object.entries(cases))
      await check(kind, title, [made, used], () => run([made, used], redis))
  }
}
for (const copy of copies) {
  for (const pair of [
    [copy, next],
    [next, copy],
  ] as const) {
    for (const [title, run] of Object.entries(contracts))
      await check('contracts', title, pair, () => run(pair))
  }
}
console.log(JSON.stringify({ checks, wrong } satisfies Seen))
process.exit() // clients that keep a connection are not waited for

/** `run` throws where something is wrong. */
async function check(kind: string, title: string, [made, used]: Pair, run: () => unknown): Promise<void> {
  checks[kind] = (checks[kind] ?? 0) + 1
  try {
    await run()
  } catch (error) {
    wrong.push(`${title}, ${made.name} in ${used.name}: ${oneLine(error)}`)
  }
}

/** An error as one line of at most 200 characters. */
function oneLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error)
    .replace(/\s+/g, ' ')
    .slice(0, 200)
}

/** The function by which a module loads packages, so that it finds the copies that lie beside it. */
async function loaderOf(path: string): Promise<(name: string) => Promise<never>> {
  const { load } = (await import(path)) as { load: (name: string) => Promise<never> }
  return load
}

/** All packages of one copy. */
async function copyOf(name: string, load: (name: string) => Promise<never>): Promise<Copy> {
  const paths = ['core', 'core/redis', 'express', 'koa', 'fastify', 'hono', 'nest', 'outbound']
  const [core, redis, express, koa, fastify, hono, nest, sent] = await Promise.all(
    paths.map((path) => load(`@sluice/${path}`)),
  )
  return { name, core, redis, express, koa, fastify, hono, nest, outbound: sent } as unknown as Copy
}
