import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { command, freePort, type RedisServer, startRedis } from '@sluice/harness/redis'
import type { LimiterEvents } from '../../../src/index.js'

jest.setTimeout(60_000)

const SOURCES = join(__dirname, '../../../src')
const SECRET = 'correct-horse'
const folder = mkdtempSync(join(tmpdir(), 'sluice-heard-'))
let open: RedisServer
let guarded: RedisServer
const programs = new Map<string, string>()
beforeAll(async () => {
  ;[open, guarded] = await Promise.all([startRedis(), startRedis()])
  await command(guarded, 'ACL', 'SETUSER', 'reader', 'on', `>${SECRET}`, '~*', '+get', '+ping', '+info')
  await command(guarded, 'CONFIG', 'SET', 'requirepass', 'another')
  await Promise.all(Object.entries(HANDED_IN).map(([name, make]) => bundle(name, make)))
})
afterAll(async () => {
  await Promise.all([open.stop(), guarded.stop()])
  rmSync(folder, { recursive: true })
})

/** How a program hands in a client of each package. */
const HANDED_IN = {
  ioredis: `import { Redis } from 'ioredis'; export const make = (o) => new Redis({ ...o, maxRetriesPerRequest: 0 })`,
  iovalkey: `import { Redis } from 'iovalkey'; export const make = (o) => new Redis({ ...o, maxRetriesPerRequest: 0 })`,
  redis: `
    import { createClient } from 'redis'
    export const make = ({ host, port, tls, ...o }) => {
      const client = createClient({ ...o, socket: { host, port, ...(tls && { ...tls, tls: true }) } })
      client.connect().catch(() => {})
      return client
    }`,
}

/** Between what is printed about one server and the next. */
const NEXT = '---'

/** Prints for each server what listeners got, how calls were decided, and all that is in an error that a call throws. */
const PROGRAM = `
  import { createLimiter, gcra } from './index.js'
  import { redisStore } from './stores/redis/index.js'
  import { inspect } from 'node:util'
  // Longer than the default, which a busy machine passes.
  const settings = { policies: [gcra({ limit: 100, window: '1s' })], deadline: '250ms' }
  for (const options of JSON.parse(process.argv[3])) {
    const store = redisStore(process.argv[2] === 'own' ? options : make(options))
    const limiter = createLimiter({ ...settings, name: 'a', store })
    const events = []
    limiter.on('degraded', (event) => events.push(event))
    const reasons = new Set()
    for (let i = 0; i < 12; i++) {
      reasons.add((await limiter.consume('k')).degraded)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const strict = createLimiter({ ...settings, name: 'b', store, onStoreError: 'throw' })
    const thrown = inspect(await strict.consume('k').catch((error) => error), { depth: 9, showHidden: true })
    console.log(JSON.stringify({ events, reasons: [...reasons], thrown }))
    console.error('${NEXT}')
  }
  process.exit()
`

async function bundle(name: string, make: string): Promise<void> {
  const outfile = join(folder, `${name}.mjs`)
  const missing = Object.keys(HANDED_IN).filter((other) => other !== name)
  const banner = {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
  }
  const stdin = { contents: make + PROGRAM, resolveDir: SOURCES, loader: 'ts' as const }
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', external: missing, banner })
  programs.set(name, outfile)
}

interface Heard {
  readonly events: readonly LimiterEvents['degraded'][]
  readonly reasons: readonly string[]
  readonly thrown: string
  readonly stderr: string
}

/** What a program hears of one server after the other. */
async function run(name: string, kind: string, servers: readonly object[]): Promise<readonly Heard[]> {
  const child = spawn(process.execPath, [programs.get(name)!, kind, JSON.stringify(servers)], {
    stdio: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const errors = stderr.split(`${NEXT}\n`)
  const heard = stdout.trim().split('\n')
  return heard.map((line, i) => ({ ...(JSON.parse(line) as Heard), stderr: errors[i]! }))
}

const at = ({ host, port }: RedisServer) => ({ host, port })

interface Server {
  readonly host: string
  readonly port: number
}

const causes: readonly [string, () => Server | Promise<Server>, string, RegExp][] = [
  [
    'nothing listens',
    async () => ({ host: '127.0.0.1', port: await freePort() }),
    'unavailable',
    /^ECONNREFUSED$/,
  ],
  [
    'the host does not exist',
    () => ({ host: 'no-host.invalid', port: 6379 }),
    'unavailable',
    /^(ENOTFOUND|EAI_AGAIN)$/,
  ],
  ['the password is wrong', () => ({ ...at(guarded), password: SECRET }), 'forbidden', /^(WRONGPASS|ERR)$/],
  ['the password is missing', () => at(guarded), 'forbidden', /^(NOAUTH|ERR)$/],
  [
    'permissions are missing',
    () => ({ ...at(guarded), username: 'reader', password: SECRET }),
    'forbidden',
    /^NOPERM$/,
  ],
  [
    'TLS is spoken to a server without',
    () => ({ ...at(open), password: SECRET, tls: {} }),
    'unavailable',
    /./,
  ],
]

describe('an outage of a store is heard over every client', () => {
  let servers: readonly Server[]
  /** What each way to a server heard of each. */
  const heard = new Map<string, readonly Heard[]>()
  beforeAll(async () => {
    servers = await Promise.all(causes.map(async ([, serverOf]) => serverOf()))
    const ways = Object.keys(HANDED_IN).flatMap((name) =>
      ['own', 'handed-in'].map((kind) => [name, kind] as const),
    )
    // Together, as most of the time goes into waiting.
    await Promise.all(
      ways.map(async ([name, kind]) => void heard.set(`${name} ${kind}`, await run(name, kind, servers))),
    )
  })

  it.each(causes.map((each, i) => [...each, i] as const))('where %s', (_, _serverOf, reason, cause, i) => {
    const endpoint = `${servers[i]!.host}:${servers[i]!.port}`
    expect(heard.size).toBe(6)
    for (const [way, all] of heard) {
      const { events, reasons, stderr, thrown } = all[i]!
      const event = {
        type: 'degraded',
        limiter: 'a',
        reason,
        cause: expect.stringMatching(cause),
        message: expect.any(String),
        endpoint,
      }
      expect({ way, reasons, events }).toEqual({ way, reasons: [reason], events: [event] })
      const [line, ...others] = stderr
        .split('\n')
        .filter((each) => each !== '' && !each.startsWith('(Use `node'))
      expect(others).toEqual([])
      expect(line).toContain(
        `[STORE_DEGRADED] SluiceWarning: the store at ${endpoint} is not usable (${reason})`,
      )
      expect(stderr + thrown + JSON.stringify(events)).not.toContain(SECRET)
    }
  })
})
