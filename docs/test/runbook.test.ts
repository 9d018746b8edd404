import {
  createLimiter,
  createSemaphore,
  type Decision,
  fixedWindow,
  gcra,
  type Limiter,
  memoryStore,
} from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import {
  type Address,
  command,
  type RedisServer,
  startProxy,
  startRedis,
  startReplica,
  until,
} from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { denialId, fleetTopKeys, observe, topKeys } from '@sluice/metrics'
import { ipKey } from '@sluice/http'
import { watchPolicies } from '@sluice/policies/node'
import { Redis } from 'ioredis'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runInThisContext } from 'node:vm'
import * as promClient from 'prom-client'

/*
 * Each command of docs/runbook.md is run as it stands there, in the state that its alert describes: with limiters that have been
 * observed from the start, and a Redis to which that has happened.
 */

const PAGE = readFileSync(resolve(__dirname, '../runbook.md'), 'utf8')

/** The commands of the page, by alert. */
const COMMANDS = new Map(
  PAGE.split(/^## /m)
    .slice(1)
    .map((section) => {
      const blocks = [...section.matchAll(/^```(?:sh|mjs)\n([^]*?)^```/gm)].map(([, lines = '']) => lines)
      return [/^(?:\w+$|.+)/m.exec(section)![0], blocks.join('').split('\n').filter(Boolean)]
    }),
)
const ran = new Set<string>()

/** The one command under an alert that has this text, without its comment. */
function commandWith(alert: string, text: string): string {
  const found = COMMANDS.get(alert)!.filter((line) => line.includes(text))
  expect(found).toHaveLength(1)
  ran.add(found[0]!)
  return found[0]!
    .replace(/ (?:#|\/\/) .*$/, '')
    .replace('policies.json', '"$POLICIES"')
    .replace('npx sluice', 'node_modules/.bin/sluice')
}

/** Runs a command of the shell against a Redis. Not in step with it, as a proxy of this process may lie between. */
function shell(
  alert: string,
  text: string,
  to: Address,
  more = '',
): Promise<{ status: unknown; out: string }> {
  const url = `redis://${to.host}:${to.port}`
  const env = { ...process.env, REDIS_URL: url, SLUICE_STORE: url }
  return new Promise((end) => {
    execFile('bash', ['-c', commandWith(alert, text) + more], { env }, (error, stdout, stderr) =>
      end({ status: error?.code ?? 0, out: `${stdout}${stderr}` }),
    )
  })
}

/** Runs a command of JavaScript with these names. */
function evaluate(alert: string, text: string, names: object): Promise<unknown> {
  const source = `(async ({ ${Object.keys(names).join()} }) => (${commandWith(alert, text)}))`
  return (runInThisContext(source) as (given: object) => Promise<unknown>)(names)
}

const closing: (() => unknown)[] = []
afterEach(async () => {
  jest.useRealTimers()
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A limiter over a Redis, observed from the start. */
function limiterOver(server: Address, username?: string): Limiter {
  const auth = username === undefined ? {} : { username, password: 'secret' }
  const client = new Redis({ host: server.host, port: server.port, ...auth, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  const store = redisStore(client)
  const limiter = createLimiter({
    name: 'api',
    policies: [gcra({ limit: 9, window: '1h' })],
    store,
    deadline: '2s',
  })
  observe(limiter, { prometheus: promClient, registry: new promClient.Registry() })
  closing.push(
    () => client.disconnect(),
    () => store.close(),
    () => limiter.close(),
  )
  return limiter
}

async function started(args: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedis({ args })
  closing.push(() => server.stop())
  return server
}

/** Calls until the store decides nothing, for this reason. */
const degraded = async (limiter: Limiter, reason: Decision['degraded']): Promise<void> => {
  let i = 0
  await until(
    `decisions without Redis: ${reason}`,
    async () => (await limiter.consume(`k${i++}`)).degraded === reason,
  )
}

describe('SluiceStoreDown', () => {
  const alert = 'SluiceStoreDown'

  it('a Redis that is stopped does not answer in 5 s', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const server = await started()
    const limiter = limiterOver(server)
    await limiter.consume('k')
    server.pause()
    await degraded(limiter, 'timeout')
    expect(await shell(alert, ' ping', server)).toEqual({ status: 124, out: '' })
    server.resume()
  })

  it('a Redis that is dead says so', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const server = await started()
    const limiter = limiterOver(server)
    await limiter.consume('k')
    await server.kill()
    await degraded(limiter, 'unavailable')
    expect((await shell(alert, ' ping', server)).out).toContain('Could not connect')
  })

  it('a replica and a full server are told from one that is well', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const server = await started()
    expect((await shell(alert, ' ping', server)).out).toBe('PONG\n')
    const replica = await startReplica(server)
    closing.push(() => replica.stop())
    await degraded(limiterOver(replica), 'readonly')
    expect((await shell(alert, 'info replication', replica)).out).toMatch(
      /role:slave\s+master_link_status:up/,
    )
    await command(server, 'CONFIG', 'SET', 'maxmemory', '1')
    await degraded(limiterOver(server), 'oom')
    const { out } = await shell(alert, 'info memory', server)
    expect(out).toMatch(/used_memory:\d+\s+maxmemory:1\s+maxmemory_policy:noeviction/)
  })
})

describe('SluiceDecidedWithoutStore', () => {
  const alert = 'SluiceDecidedWithoutStore'

  it('memory makes a full Redis decide again', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const server = await started()
    const limiter = limiterOver(server)
    await command(server, 'CONFIG', 'SET', 'maxmemory', '1')
    await degraded(limiter, 'oom')
    expect((await shell(alert, 'maxmemory', server)).out).toBe('OK\n')
    await degraded(limiter, undefined)
  })

  it('clients of a replica are made to connect anew', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['CLIENT_ON_REPLICA'] })
    const server = await started()
    const replica = await startReplica(server)
    closing.push(() => replica.stop())
    await degraded(limiterOver(replica), 'readonly')
    expect(Number((await shell(alert, 'client kill', replica)).out)).toBeGreaterThan(0)
  })

  it('a command that the user lacks is in the log of the ACL', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const server = await started()
    await command(
      server,
      'ACL',
      'SETUSER',
      'svc',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      '-evalsha',
      '-eval',
      '-fcall',
    )
    await degraded(limiterOver(server, 'svc'), 'forbidden')
    const { out } = await shell(alert, 'acl log', server)
    expect(out).toContain('svc')
    expect(out).toMatch(/eval/)
  })
})

describe('SluiceStoreSlow', () => {
  const alert = 'SluiceStoreSlow'
  const slow = (server: Address) => command(server, 'EVAL', 'for i = 1, 2e7 do end', '0')

  it('commands that take long are found in Redis', async () => {
    const server = await started()
    limiterOver(server)
    await slow(server)
    expect((await shell(alert, 'slowlog', server)).out).toContain('for i = 1, 2e7 do end')
    expect((await shell(alert, 'config set', server)).out).toBe('OK\n')
    await slow(server)
    expect((await shell(alert, 'latency latest', server)).out).toMatch(/^(?:command|eval)/m)
  })

  it('a slow network shows in the round trip, and nothing in the log of slow commands', async () => {
    const server = await started()
    const proxy = await startProxy(server)
    closing.push(() => proxy.close())
    proxy.latency(30, 'to-client')
    await limiterOver(proxy).consume('k')
    expect((await shell(alert, 'slowlog', server)).out.trim()).toBe('')
    const [shortest] = (await shell(alert, '--latency', proxy)).out.split(' ').map(Number)
    expect(shortest).toBeGreaterThanOrEqual(30)
  })
})

describe('SluiceDeniesMost', () => {
  const alert = 'SluiceDeniesMost'
  const policies = [fixedWindow({ limit: 2, window: '1h' })]

  it('the keys with most of the denials are there, though nothing asked for them before', async () => {
    const limiter = createLimiter({ name: 'api', policies })
    observe(limiter, { prometheus: promClient, registry: new promClient.Registry() })
    closing.push(() => limiter.close())
    for (let i = 0; i < 30; i++) await limiter.consume(i < 20 ? 'greedy' : `k${i}`)
    const names = { limiter, topKeys }
    expect(await evaluate(alert, 'topKeys(limiter).denied() //', names)).toEqual([
      { key: 'greedy', count: 18, error: 0 },
    ])
    await evaluate(alert, 'limiter.block', names)
    expect(await limiter.peek('greedy')).toMatchObject({ allowed: false, reason: 'blocked' })
    await evaluate(alert, 'limiter.unblock', names)
    expect((await limiter.peek('greedy')).reason).not.toBe('blocked')
  })

  it('those of all processes are there, where they share them', async () => {
    jest.useFakeTimers()
    const store = memoryStore()
    closing.push(() => store.close())
    const limiters = ['one', 'other'].map(() => createLimiter({ name: 'api', policies, store }))
    for (const limiter of limiters) {
      observe(limiter, { prometheus: promClient, registry: new promClient.Registry() })
      topKeys(limiter, { fleet: store })
      closing.push(() => limiter.close())
    }
    for (const limiter of limiters) for (let i = 0; i < 10; i++) await limiter.consume('greedy')
    await jest.advanceTimersByTimeAsync(10_000)
    const names = { limiter: limiters[0], store, fleetTopKeys }
    expect(await evaluate(alert, 'fleetTopKeys', names)).toMatchObject({
      denied: [{ key: 'greedy', count: 18 }],
    })
  })
})

it('SluiceWaitsLong: the calls that wait and the permits are seen, and a higher limit serves them', async () => {
  const alert = 'SluiceWaitsLong'
  const limiter = createLimiter({ policies: [gcra({ limit: 1, window: '1h' })] })
  const semaphore = createSemaphore({ limit: 1 })
  const names = { limiter, semaphore }
  closing.push(
    () => limiter.close(),
    () => semaphore.close(),
  )
  await semaphore.acquire()
  const waiting = semaphore.acquire()
  await limiter.consume('k')
  const turn = limiter.acquire('k', { maxWait: '2h' })
  const ended = turn.catch((error: Error) => error.message)
  await new Promise(setImmediate)
  expect(await evaluate(alert, 'semaphore.waiting', names)).toBe(1)
  expect(await evaluate(alert, 'semaphore.inUse', names)).toBe(1)
  expect(await evaluate(alert, 'limiter.waiting', names)).toBe(1)
  await evaluate(alert, 'semaphore.resize', names)
  expect((await waiting).allowed).toBe(true)
  await limiter.close()
  expect(await ended).toContain('closed')
})

it('SluiceKeysEvicted: the keys that flood a memory store are listed', async () => {
  expectWarnings(['STORE_FULL'])
  const store = memoryStore({ maxKeys: 50 })
  closing.push(() => store.close())
  const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 2, window: '1h' })], store })
  observe(limiter, { prometheus: promClient, registry: new promClient.Registry() })
  for (let i = 0; i < 2000; i++) await limiter.consume(`/path/${i}`)
  const listed = (await evaluate('SluiceKeysEvicted', 'all()', { limiter, topKeys })) as { key: string }[]
  expect(listed.length).toBeGreaterThan(10)
  expect(listed.every(({ key }) => key.startsWith('/path/'))).toBe(true)
  await limiter.close()
})

it('SluiceStateDiscarded: who else writes is found among the clients', async () => {
  const server = await started()
  const limiter = limiterOver(server)
  const healed: string[] = []
  limiter.on('healed', ({ key }) => void healed.push(key))
  await limiter.consume('k')
  const other = new Redis({ host: server.host, port: server.port, connectionName: 'restore-job' })
  closing.push(() => other.disconnect())
  for (const key of await other.keys('*')) await other.set(key, 'of another')
  await until('state to be discarded', async () => {
    await limiter.consume('k')
    return healed.includes('k')
  })
  const { out } = await shell('SluiceStateDiscarded', 'client list', server)
  expect(out).toMatch(/name=restore-job .*cmd=set /)
})

it('SluicePoliciesOld: the watch says why the file is not in force, and which one is', async () => {
  const good = '{"limiters":{"api":{"policies":[{"algorithm":"gcra","limit":100,"window":"1m"}]}}}'
  let text = good
  const watched = watchPolicies(async () => text, { every: '10ms', onError: () => {} })
  closing.push(() => watched.close())
  await watched.ready()
  text = '{"limiters":'
  await until('the file to be refused', () => watched.errors > 0)
  expect(await evaluate('SluicePoliciesOld', 'watched.error', { watched })).toMatch(
    /line 1: expected a value/,
  )
  const sum = createHash('sha256').update(good).digest('hex')
  expect(await evaluate('SluicePoliciesOld', 'watched.digest', { watched })).toBe(sum.slice(0, 16))
})

describe('a customer who is refused', () => {
  const alert = 'A customer is refused: why, and let him through'
  const address = '203.0.113.7'
  const policies = '{"limiters":{"api":{"policies":[{"algorithm":"gcra","limit":9,"window":"1h"}]}}}'

  it('is found, and let through by each of the commands', async () => {
    const server = await started()
    const limiter = limiterOver(server)
    const key = ipKey(address)
    const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
    closing.push(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'policies.json')
    writeFileSync(file, policies)
    /** Runs the command with the file, whose name on the page is that in the folder of the service. */
    const run = async (text: string, more = '') => {
      const { status, out } = await shell(alert, `sluice ${text}`, server, more)
      expect([status, out]).toEqual([0, expect.any(String)])
      return out
    }
    process.env['POLICIES'] = file
    closing.push(() => ['POLICIES', 'SLUICE_SECRET', 'ID'].forEach((name) => delete process.env[name]))
    while ((await limiter.consume(key)).allowed);
    const secret = 'b7e151628aed2a6abf7158809cf4f3c7'
    process.env['SLUICE_SECRET'] = secret
    process.env['ID'] =
      `urn:sluice:denial:${denialId(secret, { limiter: 'api', storedKey: key, at: Date.now() })}`
    expect(await run('why --id')).toContain(`api: ${key}\n`)
    expect(await run(`why ${address}`)).toMatch(
      /is denied under '9-per-1h'[^]*sluice exempt --key ip:203\.0\.113\.7 --for 1h/,
    )
    await limiter.block(key, '1h', { reason: 'scrapes', by: 'ann' })
    expect(await run('blocked')).toMatch(/ip:203\.0\.113\.7 [^]*ann: scrapes/)
    await run('unblock', ' --yes')
    expect(await limiter.peek(key)).toMatchObject({ allowed: false, reason: 'limit' })
    await run('exempt', ' --yes')
    expect(await run('overrides')).toMatch(/ip:203\.0\.113\.7 [^]*exempt [^]*ticket 42/)
    await until('the exemption to be known here', async () => (await limiter.consume(key)).allowed)
    await limiter.removeOverride(key)
    await run('reset', ' --yes')
    expect(await limiter.peek(key)).toMatchObject({ allowed: true, remaining: 9 })
  })
})

it('runs every command of the page', async () => {
  await started() // without Redis this is skipped as the others are
  const all = [...COMMANDS.values()].flat()
  expect(all.length).toBeGreaterThan(15)
  expect(all.filter((line) => !ran.has(line))).toEqual([])
})

it('names panels that the dashboard has', () => {
  const path = resolve(__dirname, '../../packages/metrics/grafana/sluice.json')
  const { panels } = JSON.parse(readFileSync(path, 'utf8')) as { panels: { title: string }[] }
  const titles = panels.map(({ title }) => title)
  const italic = [...PAGE.matchAll(/(?<![*\w])\*([A-Z][^*]+)\*(?!\*)/g)]
  const named = italic.map(([, title = '']) => title.replaceAll(/\s+/g, ' '))
  const { length } = named
  expect(length).toBeGreaterThan(5)
  // The first line says for whom the page is.
  expect(named.slice(1).filter((title) => !titles.some((each) => each.startsWith(title)))).toEqual([])
})
