// The packages that the scripts of each page are run on. Everything that these packages export is there by its name.

/** @typedef {{ there: readonly string[], here: readonly string[], framework?: string }} Peer */

const CORE = ['@sluice/core', '@sluice/core/redis']
const OUTBOUND = [...CORE, '@sluice/outbound']

/** @type {Readonly<Record<string, Peer>>} */
export const PEERS = {
  'bottleneck.md': { there: ['bottleneck', 'node:util'], here: [...OUTBOUND, 'node:util'] },
  'express-rate-limit.md': {
    there: ['express-rate-limit', 'rate-limit-redis'],
    here: [...CORE, '@sluice/express'],
    framework: 'express',
  },
  'express-slow-down.md': {
    there: ['express-slow-down'],
    here: [...CORE, '@sluice/express'],
    framework: 'express',
  },
  'fastify-rate-limit.md': {
    there: ['@fastify/rate-limit'],
    here: [...CORE, '@sluice/fastify'],
    framework: 'fastify',
  },
  'hono-rate-limiter.md': {
    there: ['hono-rate-limiter', '@hono/node-server/conninfo'],
    here: [...CORE, '@sluice/hono', '@hono/node-server/conninfo'],
    framework: 'hono',
  },
  'koa-ratelimit.md': { there: ['koa-ratelimit'], here: [...CORE, '@sluice/koa'], framework: 'koa' },
  'limiter.md': { there: ['limiter'], here: OUTBOUND },
  'nestjs-throttler.md': {
    there: ['@nestjs/throttler', '@nest-lab/throttler-storage-redis'],
    here: [...CORE, '@sluice/http', '@sluice/nest'],
    framework: 'nest',
  },
  'p-queue.md': { there: ['p-queue', 'p-throttle'], here: OUTBOUND },
  'rate-limiter-flexible.md': { there: ['rate-limiter-flexible'], here: OUTBOUND },
  'upstash-ratelimit.md': {
    there: ['@upstash/ratelimit', './upstash.js'],
    here: [...CORE, '@sluice/core/store'],
  },
}
