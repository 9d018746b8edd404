import { createLimiter, gcra, slidingLog } from '@sluice/core'
import { byUser, rateLimit, rateLimitHook } from '@sluice/fastify'
import fastify, { type FastifyRequest } from 'fastify'

const app = fastify()

// By IP, on every route without a limit of its own: 20 in any 10 seconds, wherever they begin.
await app.register(rateLimit, { name: 'all', policies: [slidingLog({ limit: 20, window: '10s' })] })

app.get('/', (request) => ({ left: request.rateLimit?.remaining }))
app.get('/health', { config: { rateLimit: false } }, () => ({ ok: true }))

// A group: both routes have the same options object, so a user's searches are counted together.
const search = { name: 'search', limit: 3, window: '10s', key: byUser(userOf, 'search') } as const
app.get('/search/people', { config: { rateLimit: search } }, () => ({ people: [] }))
app.get('/search/places', { config: { rateLimit: search } }, () => ({ places: [] }))

// Beside the limit of all routes, and by what is in the body, which a hook after parsing can see.
const imports = createLimiter({ name: 'imports', policies: [gcra({ limit: 100, window: '1m' })] })
const preValidation = rateLimitHook({ limiter: imports, cost: rowsOf })
app.post('/import', { preValidation }, (request) => ({ rows: rowsOf(request) }))

/** A real service takes the user from a session or token that it has verified, never from a plain header. */
function userOf(request: FastifyRequest): string | undefined {
  return request.headers['x-user']?.toString()
}

function rowsOf({ body }: FastifyRequest): number {
  return Array.isArray(body) ? body.length : 1
}

process.once('SIGINT', () => void app.close())
console.log(
  `Serving on ${await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) })}`,
)
