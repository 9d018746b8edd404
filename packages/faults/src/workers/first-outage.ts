import { createLimiter, gcra } from '@sluice/core'
import { type RedisOptions, redisStore } from '@sluice/core/redis'

/** A process that cannot log in. Prints what its listeners hear of that first, and why its calls are degraded. */
async function callInVain(kind: string, options: LoginTo): Promise<void> {
  const store = redisStore(kind === 'own' ? options : await connecting[kind]!(options))
  const limiter = createLimiter({ name: 'l', policies: [gcra({ limit: 1, window: '1s' })], store })
  const events: string[] = []
  limiter.on('degraded', ({ reason, cause }) => events.push(`${reason} by ${cause}`))
  const reasons: string[] = []
  for (let i = 0; i < 5; i++) reasons.push((await limiter.consume('k')).degraded ?? 'decided')
  const heard: FirstOutage = { events, reasons }
  process.stdout.write(JSON.stringify(heard), () => process.exit())
}

export type LoginTo = Required<Pick<RedisOptions, 'host' | 'port' | 'username' | 'password'>>

export interface FirstOutage {
  /** Reason and cause of each event `degraded`. */
  readonly events: readonly string[]
  readonly reasons: readonly string[]
}

/** Clients that are handed in while they connect. */
const connecting: Readonly<Record<string, (options: LoginTo) => Promise<Parameters<typeof redisStore>[0]>>> =
  {
    ioredis: async (options) => new (await import('ioredis')).Redis({ ...options, maxRetriesPerRequest: 0 }),
    iovalkey: async (options) =>
      new (await import('iovalkey')).Redis({ ...options, maxRetriesPerRequest: 0 }),
    'node-redis': async ({ host, port, ...login }) => {
      const client = (await import('redis')).createClient({ ...login, socket: { host, port } })
      client.connect().catch(() => {})
      return client
    },
    'iovalkey without ready check': async (options) =>
      new (await import('iovalkey')).Redis({ ...options, maxRetriesPerRequest: 0, enableReadyCheck: false }),
  }

void callInVain(process.argv[2]!, JSON.parse(process.argv[3]!) as LoginTo)
