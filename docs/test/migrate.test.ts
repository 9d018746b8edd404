import { onSources } from '@sluice/harness/processes'
import { freePort, type RedisServer, startRedis } from '@sluice/harness/redis'
import { transformSync } from '@swc/core'
import { Redis } from 'ioredis'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { serveUpstash } from './upstash-rest.js'

/*
 * Every page of docs/migrate has an application as it was with another package, followed by the same with ours. Both are
 * started as they stand there, and asked the same: their answers must be the same too.
 */

const PAGES = resolve(__dirname, '../migrate')
const BLOCKS = /^```ts before\n([^]*?)^```$[^]*?^```ts\n([^]*?)^```$/gm

const applications = readdirSync(PAGES)
  .sort()
  .flatMap((page) =>
    [...readFileSync(join(PAGES, page), 'utf8').matchAll(BLOCKS)].map(([, before, after], i) => ({
      name: i === 0 ? page : `${page} (${i + 1})`,
      before: before!,
      after: after!,
    })),
  )

interface Asked {
  /** Method and path. Default: `GET /`. */
  readonly line?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A header and the value that it has to get; asked again until then. */
  readonly until?: readonly [name: string, value: string]
}

interface Script {
  readonly asked: readonly Asked[]
  /** The headers that are compared on answers of every status but those in `notOn`. */
  readonly headers: readonly string[]
  readonly notOn?: readonly number[]
  /** Asked before, all at once. */
  readonly together?: readonly Asked[]
  /** Whether the text of denials is compared too. */
  readonly denials?: false
  /** Windows that end within the test, and longer ones in their place. */
  readonly windows?: readonly (readonly [short: string, long: string])[]
  /** The package whose README has these blocks, each named by a part of it, and what the application has in place of parts. */
  readonly readme?: {
    readonly of: string
    readonly blocks: readonly string[]
    readonly but?: readonly (readonly [there: string, instead: string])[]
  }
}

const as = (user: string, line = 'GET /'): Asked => ({ line, headers: { 'x-user': user } })
const times = (n: number, asked: Asked): readonly Asked[] => Array<Asked>(n).fill(asked)
const X_RATELIMIT = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

const SCRIPTS: Readonly<Record<string, Script>> = {
  'express-rate-limit.md': {
    asked: [...times(5, as('ann')), as('bob'), as('ann', 'GET /health'), ...times(4, {})],
    headers: [...X_RATELIMIT, 'ratelimit', 'ratelimit-policy', 'retry-after'],
  },
  'express-rate-limit.md (3)': {
    asked: [
      ...times(3, as('ann')),
      { line: 'GET /', headers: { 'x-user': 'bob', 'x-password': 'right' } },
      // Shows 1 only after the charge of the request before was given back.
      { headers: { 'x-user': 'bob', 'x-password': 'right' }, until: ['x-ratelimit-remaining', '1'] },
    ],
    headers: ['x-ratelimit-limit', 'x-ratelimit-remaining', 'retry-after'],
    denials: false,
  },
  'limiter.md': { asked: times(4, {}), headers: [] },
  'express-slow-down.md': {
    together: times(4, { line: 'GET /reports' }),
    asked: [{ line: 'GET /served' }, { line: 'GET /nothing' }],
    headers: [],
  },
  'rate-limiter-flexible.md': {
    asked: [
      as('ann', 'GET /orders'),
      ...times(4, as('ann', 'POST /orders')),
      as('bob', 'POST /orders'),
      as('ann', 'GET /orders'),
      as('ann', 'DELETE /orders'),
      as('ann', 'POST /orders'),
      as('ann', 'GET /orders'),
      ...times(4, { line: 'POST /orders' }),
      { line: 'GET /orders' },
      { line: 'DELETE /orders' },
      { line: 'POST /orders' },
    ],
    headers: ['retry-after'],
  },
  'nestjs-throttler.md': {
    asked: [...times(2, { line: 'GET /login' }), ...times(4, {}), { line: 'GET /health' }],
    headers: X_RATELIMIT,
    notOn: [429],
    denials: false,
  },
  'koa-ratelimit.md': {
    asked: [...times(5, as('ann')), as('bob'), as('admin'), as('mallory')],
    headers: ['rate-remaining', 'rate-reset', 'rate-total', 'retry-after'],
    notOn: [403],
    denials: false,
  },
  'fastify-rate-limit.md': {
    asked: [
      ...times(5, as('ann')),
      as('bob'),
      ...times(2, as('ann', 'GET /login')),
      as('ann', 'GET /health'),
      ...times(5, as('admin')),
      ...times(4, {}),
    ],
    headers: [...X_RATELIMIT, 'retry-after'],
  },
  'p-queue.md': {
    asked: [{ line: 'GET /reports?names=a,b,c,d,e,f' }, { line: 'GET /reports?names=a,b,c,d,e,f,g,h,i,j,k' }],
    headers: [],
  },
  'p-queue.md (2)': {
    asked: [{ line: 'GET /words?words=a,b,c,d,e' }, { line: 'GET /words?words=a,bad' }],
    headers: [],
  },
  'hono-rate-limiter.md': {
    asked: [...times(5, as('ann')), as('bob'), as('ann', 'GET /health'), ...times(4, {})],
    headers: ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'ratelimit-policy', 'retry-after'],
  },
  'upstash-ratelimit.md': {
    asked: [...times(5, as('ann')), as('bob'), ...times(4, {})],
    headers: X_RATELIMIT.slice(0, 2),
  },
  'express-rate-limit.md (2)': {
    asked: times(101, {}),
    headers: ['x-ratelimit-limit', 'retry-after'],
    denials: false,
    readme: { of: 'express-rate-limit', blocks: ["standardHeaders: 'draft-8'"] },
  },
  'express-rate-limit.md (4)': {
    asked: times(101, {}),
    headers: ['x-ratelimit-limit', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-policy'],
    denials: false,
    readme: {
      of: 'rate-limit-redis',
      blocks: ["import RedisClient from 'ioredis'"],
      but: [['new RedisClient()', "new RedisClient('redis://localhost:6379')"]],
    },
  },
  'express-slow-down.md (2)': {
    together: times(6, { line: 'GET /reports' }),
    asked: [{ line: 'GET /served' }, { line: 'POST /served' }],
    headers: [],
    denials: false,
    readme: { of: 'express-slow-down', blocks: ['requests 1-5 are not delayed'] },
  },
  'rate-limiter-flexible.md (2)': {
    asked: times(5, {}),
    headers: ['x-ratelimit-remaining'],
    windows: [
      ['duration: 1,', 'duration: 60,'],
      ["window: '1s'", "window: '1m'"],
    ],
    readme: {
      of: 'rate-limiter-flexible',
      blocks: ['consume 2 points'],
      but: [
        [
          '.then((rateLimiterRes) => {',
          ".then((rateLimiterRes) => { res.set('X-RateLimit-Remaining', String(rateLimiterRes.remainingPoints)).send('consumed')",
        ],
        [
          '.catch((rateLimiterRes) => {',
          ".catch((rateLimiterRes) => { res.set('X-RateLimit-Remaining', String(rateLimiterRes.remainingPoints)).status(429).send('not enough')",
        ],
      ],
    },
  },
  'nestjs-throttler.md (2)': {
    asked: times(11, {}),
    headers: X_RATELIMIT,
    notOn: [429],
    denials: false,
    readme: { of: '@nestjs/throttler', blocks: ['limit: 10,', 'useClass: ThrottlerGuard'] },
  },
  'koa-ratelimit.md (2)': {
    asked: times(101, {}),
    headers: ['rate-limit-remaining', 'rate-limit-reset', 'rate-limit-total', 'retry-after'],
    readme: {
      of: 'koa-ratelimit',
      blocks: ["driver: 'memory'"],
      but: [
        ["const Koa = require('koa')", "import Koa from 'koa'"],
        ["const ratelimit = require('koa-ratelimit')", "import ratelimit from 'koa-ratelimit'"],
      ],
    },
  },
  'fastify-rate-limit.md (2)': {
    asked: times(101, {}),
    headers: [...X_RATELIMIT, 'retry-after'],
    denials: false,
    readme: {
      of: '@fastify/rate-limit',
      blocks: ["register(import('@fastify/rate-limit'), {\n  max: 100,"],
      but: [['err => {', '(err) => {']],
    },
  },
  'limiter.md (2)': {
    asked: times(12, {}),
    headers: [],
    windows: [
      ["interval: 'second'", "interval: 'minute'"],
      ["window: '1s'", "window: '1m'"],
    ],
    readme: { of: 'limiter', blocks: ['tryRemoveTokens(1)'] },
  },
  'upstash-ratelimit.md (2)': {
    asked: times(12, {}),
    headers: [],
    windows: [
      ["'10 s'", "'1 h'"],
      ["window: '10s'", "window: '1h'"],
    ],
    readme: { of: '@upstash/ratelimit', blocks: ['10 requests per 10 seconds'] },
  },
}

let folder: string
let redis: RedisServer
let client: Redis
let upstash: Awaited<ReturnType<typeof serveUpstash>>
const children: ChildProcess[] = []

beforeAll(async () => {
  // Inside of the repository, where the packages are found as in an application that has installed them.
  folder = mkdtempSync(join(__dirname, '.migrate-'))
  redis = await startRedis()
  client = new Redis(redis.port, redis.host)
  upstash = await serveUpstash(client)
}, 20_000)

beforeEach(() => client.flushdb())

afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    }),
  )
})

afterAll(async () => {
  upstash.close()
  client.disconnect()
  await redis.stop()
  rmSync(folder, { recursive: true })
})

it('every page with applications has a script, and every script a page', () => {
  expect(applications.map(({ name }) => name)).toEqual(Object.keys(SCRIPTS).sort())
})

it.each(applications)(
  '$name: answers as before',
  async ({ name, before, after }) => {
    const script = SCRIPTS[name]!
    const [theirs, ours] = [
      await answersOf('before', before, script),
      await answersOf('after', after, script),
    ]
    expect(ours).toEqual(theirs)
    expect(new Set(theirs.map(({ status }) => status)).size).toBeGreaterThan(1)
  },
  30_000,
)

it.each(applications.filter(({ name }) => SCRIPTS[name]?.readme))(
  "$name: is its package's README",
  ({ name, before }) => {
    const { of, blocks, but = [] } = SCRIPTS[name]!.readme!
    const home = resolve('node_modules', of)
    const file = readdirSync(home).find((each) => each.toLowerCase() === 'readme.md')!
    const written = readFileSync(join(home, file), 'utf8').matchAll(/^```\w+\n(?:@@.*\n)?([^]*?)^```$/gm)
    const examples = [...written].map(([, code]) => code!)
    for (const part of blocks) {
      const example = examples.find((code) => code.includes(part))
      expect(example).toBeDefined()
      const expected = but.reduce((code, [there, instead]) => code.replace(there, instead), example!)
      // What an example leaves out may stand between its paragraphs.
      for (const paragraph of expected.split(/\n\s*\n(?=\S)/)) expect(bare(before)).toContain(bare(paragraph))
    }
  },
)

/** A program without comments, and without what a formatter decides. */
function bare(code: string): string {
  return code
    .replaceAll(/\/\*[^]*?\*\/|(?<!:)\/\/.*$/gm, '')
    .replaceAll('"', "'")
    .replaceAll(/[;\s]/g, '')
    .replaceAll(/,(?=[)\]}])/g, '')
}

/** Starts an application on a port of its own and asks it all of a script, one after another. */
async function answersOf(kind: string, code: string, script: Script) {
  const { together = [], asked, headers, notOn = [], denials, windows = [] } = script
  const port = await freePort()
  const file = join(folder, `${kind}-${port}.mjs`)
  writeFileSync(
    file,
    javascript(windows.reduce((text, [short, long]) => text.replace(short, long), code))
      .replaceAll('3000', String(port))
      .replace(/^( +)store,$/m, "$&\n$1deadline: '10s',") // a slow Redis must not let it decide alone
      .replaceAll('redis://localhost:6379', `redis://${redis.host}:${redis.port}`),
  )
  const env = { ...process.env, UPSTASH_REDIS_REST_URL: upstash.url, UPSTASH_REDIS_REST_TOKEN: 'token' }
  const child = spawn(process.execPath, [...onSources(), file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  children.push(child)
  let errors = ''
  child.stderr.on('data', (data) => (errors += data))
  await untilListening(port, child, () => errors)
  const answerOf = async ({ line = 'GET /', headers: sent = {}, until }: Asked) => {
    const [method, path] = line.split(' ') as [string, string]
    const ask = async () => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: sent })
      return { status: reply.status, headers: reply.headers, text: await reply.text() }
    }
    let reply = await ask()
    while (until && reply.headers.get(until[0]) !== until[1]) reply = await ask()
    const { status, text } = reply
    const compared = notOn.includes(status) ? [] : headers
    return {
      asked: line,
      status,
      text: denials === false && status >= 400 ? '' : text,
      headers: Object.fromEntries(compared.map((name) => [name, rounded(reply.headers.get(name))])),
    }
  }
  const answers = await Promise.all(together.map(answerOf))
  for (const each of asked) answers.push(await answerOf(each))
  return answers
}

/** Numbers of 50 and more are seconds, which may be one less when the clock has gone on. They count in minutes. */
function rounded(header: string | null): string | null {
  return (
    header &&
    header.replaceAll(/\d{2,}(?:\.\d+)?/g, (number) => (Number(number) < 50 ? number : minutes(number)))
  )
}

function minutes(seconds: string): string {
  const sinceNow = Number(seconds) > 1e9 ? Number(seconds) - Date.now() / 1000 : Number(seconds)
  return `${Math.round(sinceNow / 60)}min`
}

function javascript(code: string): string {
  const { code: compiled } = transformSync(code, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'es6' },
  })
  return compiled
}

async function untilListening(port: number, child: ChildProcess, errors: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`the application ended: ${errors()}`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise<boolean>((done) => {
      socket.once('connect', () => done(true)).once('error', () => done(false))
    })
    socket.destroy()
    if (isOpen) return
    await wait(20)
  }
}
