import { FakeClock } from '@sluice/testing'
import { type Decision, type Limiter, type Store } from '@sluice/core'
import { ipKey } from '@sluice/http'
import type { RedisStore } from '@sluice/core/redis'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import type { Express } from 'express'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { closeServers, serve } from './recipes/served.js'
import { expectWarnings } from '@sluice/harness/warnings'

/*
 * Every answer of docs/how-do-i.md is run as it stands there, and then asked what its question is about.
 */

const PAGE = readFileSync(resolve(__dirname, '../how-do-i.md'), 'utf8')
const answers = [...PAGE.matchAll(/^## (.+)\n```ts\n([^]*?)^```\n(.+)$/gm)].map(
  ([, question = '', code = '', link = '']) => ({ question, code, link }),
)

/** What an answer declares, by name. */
interface Made {
  readonly app: Express
  readonly clock: FakeClock
  readonly limiter: Limiter
  readonly store: Store
  readonly [name: string]: unknown
}

type Headers = Readonly<Record<string, string>>

/** Runs an answer of the page once more. */
type Again = () => Promise<Made>

const questions: Readonly<Record<string, (made: Made, again: Again) => Promise<void>>> = {
  'Test it': async ({ clock, limiter }) => {
    const allowed = async () => (await limiter.consume('ann')).allowed
    for (let i = 0; i < 10; i++) expect(await allowed()).toBe(true)
    expect(await allowed()).toBe(false)
    clock.pass(60_000)
    expect(await allowed()).toBe(true)
  },
  'Limit by user': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(11, { 'x-user': 'ann' })).toEqual(passing(10, 1))
    expect(await ask(1, { 'x-user': 'bob' })).toEqual(passing(1))
    expectWarnings(['USER_MISSING'])
    expect(await ask(1)).toEqual(passing(1))
  },
  'Give each plan its own limit': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(11)).toEqual(passing(10, 1))
    expect(await ask(11, { 'x-paid': 'yes' })).toEqual(passing(10, 1)) // keeps what he has used
  },
  'Limit a tenant and each of his users': async ({ ask }) => {
    const consume = ask as (tenant: string, user: string) => Promise<{ allowed: boolean }>
    const admitted = async (tenant: string, user: string) => {
      const answers = await Promise.all(Array.from({ length: 11 }, () => consume(tenant, user)))
      return answers.filter(({ allowed }) => allowed).length
    }
    expect(await admitted('acme', 'ann')).toBe(10)
    expect(await admitted('acme', 'bob')).toBe(10) // what ann was denied took nothing from acme
    expect(await admitted('acme', 'cid')).toBe(0)
    expect(await admitted('other', 'cid')).toBe(10)
  },
  'Run it behind a proxy': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(11, { 'x-forwarded-for': '203.0.113.7' })).toEqual(passing(10, 1))
    expect(await ask(1, { 'x-forwarded-for': '203.0.113.8' })).toEqual(passing(1))
    expect(await ask(1, { 'x-forwarded-for': '203.0.113.8, 203.0.113.7' })).toEqual(passing(0, 1))
  },
  'Find out why everybody is limited': async ({ app }) => {
    expectWarnings(['FORWARDED_NOT_TRUSTED'])
    const origin = await serve(app)
    for (const address of ['203.0.113.7', '203.0.113.8']) {
      const reply = await fetch(origin, { headers: { 'x-forwarded-for': address } })
      expect(await reply.text()).toBe(ipKey('127.0.0.1'))
    }
  },
  'Skip health checks': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(11, {}, '/health')).toEqual(passing(11))
    expect(await ask(11)).toEqual(passing(10, 1))
  },
  'Share one limit among many routes': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(10, {}, '/orders')).toEqual(passing(10))
    expect(await ask(1, {}, '/carts')).toEqual(passing(0, 1))
    expect(await ask(1, {}, '/')).toEqual(passing(1))
  },
  'Limit one route more strictly': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(4, {}, '/login', 'POST')).toEqual(passing(3, 1))
    expect(await ask(7)).toEqual(passing(6, 1))
  },
  'Tell callers their limit': async ({ app }) => {
    const { headers } = await fetch(await serve(withEnd(app)))
    expect(headers.get('x-ratelimit-remaining')).toBe('9')
    expect(headers.get('ratelimit')).toBe('"default";r=9;t=60')
  },
  'Answer a denial in my own words': async ({ app }) => {
    const origin = await serve(withEnd(app))
    let reply = await fetch(origin)
    while (reply.ok) reply = await fetch(origin)
    expect([reply.status, await reply.text()]).toEqual([429, 'Slow down, please.'])
    expect(reply.headers.get('retry-after')).toMatch(/^\d+$/)
  },
  'Why is a caller refused?': async ({ limiter, why, print }) => {
    const [address, log] = ['203.0.113.7', jest.spyOn(console, 'log').mockReturnValue()]
    for (let i = 0; i < 11; i++) await limiter.consume(ipKey(address))
    const { cures } = await (why as (address: string) => Promise<{ cures: unknown }>)(address)
    expect(cures).toEqual(['reset', 'override'])
    await (print as (address: string) => Promise<void>)(address)
    expect(log.mock.calls).toEqual([[expect.stringMatching(/is denied .*; reset or override is enough; /)]])
    log.mockRestore()
  },
  'Unblock one caller': async ({ limiter, unblock, forgive }) => {
    const address = '203.0.113.7'
    const ask = () => limiter.consume(ipKey(address))
    for (let i = 0; i < 11; i++) await ask()
    await limiter.block(ipKey(address), '7d')
    expect((await ask()).reason).toBe('blocked')
    expect((await limiter.peek(ipKey(address))).policies).toMatchObject([{ remaining: 0, used: 10 }])
    await (unblock as (address: string) => Promise<void>)(address)
    expect((await ask()).reason).toBe('limit')
    await (forgive as (address: string) => Promise<void>)(address)
    expect((await ask()).allowed).toBe(true)
  },
  'Ban one caller': async ({ limiter, ban }) => {
    const address = '203.0.113.7'
    await (ban as (address: string) => Promise<void>)(address)
    expect((await limiter.consume(ipKey(address))).reason).toBe('blocked')
    expect(await limiter.overrides()).toMatchObject([{ kind: 'block', reason: 'scrapes', by: 'ann' }])
  },
  'Exempt one caller': async ({ limiter, exempt }) => {
    const address = '203.0.113.7'
    await (exempt as (address: string) => Promise<unknown>)(address)
    for (let i = 0; i < 12; i++) expect((await limiter.consume(ipKey(address))).allowed).toBe(true)
    await limiter.block(ipKey(address), '1h')
    expect((await limiter.consume(ipKey(address))).reason).toBe('blocked')
  },
  'Change a limit while it runs': async ({ ask, change }) => {
    const consume = ask as (key: string) => Promise<Decision>
    for (let i = 0; i < 10; i++) await consume('ann')
    expect((await consume('ann')).allowed).toBe(false)
    ;(change as (limit: number) => void)(12)
    expect((await consume('ann')).remaining).toBe(1)
  },
  'Count only failures': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(6)).toEqual(passing(6))
    expect(await ask(6, { 'x-status': '401' })).toEqual([401, 401, 401, 401, 401, 429])
  },
  'Make requests wait in place of a 429': async ({ app }) => {
    const ask = await asking(app)
    expect(await Promise.all([ask(1), ask(1)])).toEqual([passing(1), passing(1)])
  },
  'Limit several processes together': async ({ app, store }, again) => {
    const other = await again()
    const [ask, askOther] = [await asking(app), await asking(other.app)]
    expect(await ask(10)).toEqual(passing(10))
    expect(await askOther(1)).toEqual(passing(0, 1))
    await Promise.all([store.close(), other.store.close()])
  },
  'Keep one connection under hot reload': async ({ store }, again) => {
    const stores = [store as RedisStore]
    for (let i = 0; i < 5; i++) stores.push((await again()).store as RedisStore)
    for (const each of stores) await each.ready()
    const connections = (await command(redis, 'CLIENT', 'LIST')).trim().split('\n')
    for (const each of stores) await each.close()
    delete (globalThis as { limits?: unknown }).limits
    expect(connections.filter((line) => !line.includes('cmd=client'))).toHaveLength(1)
  },
  'Limit by the second and by the hour': async ({ limiter }) => {
    const decisions = await Promise.all(Array.from({ length: 6 }, () => limiter.consume('user:42')))
    expect(decisions.at(-1)).toMatchObject({ allowed: false, policy: '5-per-1s' })
    expect(decisions.at(-1)?.policies.map(({ name }) => name)).toEqual(['5-per-1s', '100-per-1h'])
  },
  'Charge more for an expensive request': async ({ app }) => {
    const ask = await asking(app)
    expect(await ask(1, {}, '/export')).toEqual(passing(1))
    expect(await ask(6)).toEqual(passing(5, 1))
  },
  'Try a limit before it denies anybody': async ({ limiter }) => {
    const log = jest.spyOn(console, 'log').mockReturnValue()
    for (let i = 0; i < 11; i++) expect((await limiter.consume('ann')).allowed).toBe(true)
    expect(log.mock.calls).toEqual([['too many', 'ann']])
    log.mockRestore()
  },
  'Limit calls that go out': async (_, again) => {
    jest.useFakeTimers()
    expectWarnings([], { perhaps: ['CLOCK_FAKED'] }) // limiters of earlier answers look at their records meanwhile
    const { limitedSend } = await again()
    const sent: string[] = []
    for (const to of ['a', 'b']) {
      void (limitedSend as (to: string) => Promise<string>)(to).then((said) => sent.push(said))
    }
    await jest.advanceTimersByTimeAsync(99)
    expect(sent).toEqual(['sent to a'])
    await jest.advanceTimersByTimeAsync(1)
    expect(sent).toEqual(['sent to a', 'sent to b'])
    jest.useRealTimers()
  },
}

let folder: string
let redis: RedisServer
beforeAll(async () => {
  // Inside of the repository, where the packages are found as in an application that has installed them.
  folder = mkdtempSync(join(__dirname, '.how-do-i-'))
  redis = await startRedis()
})
afterEach(() => closeServers())
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await redis.stop()
})

describe('how do I', () => {
  it('answers twenty-four questions, in five lines and a link each', () => {
    expect(answers).toHaveLength(24)
    for (const { code, link } of answers) {
      expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(5)
      expect(link).toMatch(/\]\([^)]+\)/)
    }
  })

  it('has a test for every question, in the order of the page', () => {
    expect(answers.map(({ question }) => question)).toEqual(Object.keys(questions))
  })

  it.each(answers)('$question: as the answer says', async ({ question, code }) => {
    const again = () => run(code)
    await questions[question]!(await again(), again)
  })
})

let files = 0

/** What the code declares, once it has run. */
async function run(code: string): Promise<Made> {
  const file = join(folder, `${++files}.ts`)
  const imports = code.match(/^import .+$/gm)!.join('\n')
  const body = code
    .replace(/^import .+\n/gm, '')
    .replaceAll('redis://localhost:6379', `redis://${redis.host}:${redis.port}`)
    .replace(/, store }/, ", store, deadline: '10s' }") // a slow Redis must not let it decide alone
  const names = [...body.matchAll(/^(?:const|let) (\w+) /gm)].map(([, name]) => name)
  writeFileSync(file, `${imports}\nexport async function run() {\n${body}return { ${names.join(', ')} }\n}\n`)
  const module = (await import(file)) as { run: () => Promise<Made> }
  return module.run()
}

/** The application, and an answer for all that it lets through. */
function withEnd(app: Express): Express {
  return app.use((req, res) => void res.status(Number(req.get('x-status') ?? 200)).send('ok'))
}

/** Asks an application some times, one request after the other, for the statuses of its answers. */
async function asking(app: Express) {
  const origin = await serve(withEnd(app))
  return async (times: number, headers: Headers = {}, path = '/', method = 'GET') => {
    const statuses: number[] = []
    for (let i = 0; i < times; i++) {
      const reply = await fetch(origin + path, { method, headers })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    return statuses
  }
}

/** Statuses of so many requests that pass, and of those after them that are denied. */
function passing(passed: number, denied = 0): readonly number[] {
  return [...Array<number>(passed).fill(200), ...Array<number>(denied).fill(429)]
}
