import { freePort, command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'

/*
 * How the command as it is published reaches a store: by TLS, by a password, with permissions. Each refusal is one line without a stack
 * and without the password, and the exit code 3.
 */

const COMMAND = join(__dirname, '../bin/sluice.js')
const PASSWORD = 'hunter2'

let folder: string
let port: number
let redis: RedisServer
let postgres: PostgresServer
const pathOf = (name: string): string => join(folder, name)
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const openssl = (...args: string[]): unknown =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const pair = (name: string) => [
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    `${name}.key`,
    '-subj',
    `/CN=${name}`,
  ]
  openssl('req', '-x509', ...pair('authority'), '-out', 'authority.pem')
  openssl('req', ...pair('server'), '-out', 'server.csr')
  const signed = ['-CA', 'authority.pem', '-CAkey', 'authority.key', '-CAcreateserial']
  writeFileSync(pathOf('names'), 'subjectAltName = IP:127.0.0.1')
  openssl('x509', '-req', '-in', 'server.csr', ...signed, '-extfile', 'names', '-out', 'server.pem')
  port = await freePort()
  const own = (name: string) => ['--tls-cert-file', pathOf(name), '--tls-key-file', pathOf('server.key')]
  const ca = ['--tls-ca-cert-file', pathOf('authority.pem'), '--tls-auth-clients', 'no']
  redis = await startRedis({ args: ['--tls-port', `${port}`, ...own('server.pem'), ...ca] })
  const limits = { policies: [{ algorithm: 'gcra', limit: 1, window: '1h' }] }
  writeFileSync(pathOf('policies.json'), JSON.stringify({ limiters: { api: limits } }))
  postgres = await startPostgres()
})
afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()])
  rmSync(folder, { recursive: true })
})

/** Runs the command in a process, whose environment has the store. */
function sluice(url: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    const all = { PATH: process.env['PATH'], SLUICE_STORE: url, ...env }
    execFile(process.execPath, [COMMAND, ...args], { env: all, cwd: folder }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

const POLICIES = ['--policies', 'policies.json']
const trusted = () => ({ NODE_EXTRA_CA_CERTS: pathOf('authority.pem') })

it('reaches a store over TLS by an authority of NODE_EXTRA_CA_CERTS, and acts there', async () => {
  const url = `rediss://127.0.0.1:${port}`
  const act = ['block', 'ann', '--for', '1h', '--reason', 'r', '--as', 'ann', '--yes', ...POLICIES]
  expect(await sluice(url, act, trusted())).toMatchObject({ status: 0, stderr: '' })
  const { stdout } = await sluice(url, ['why', 'ann', ...POLICIES], trusted())
  expect(stdout).toContain('block by "ann" ("r")')
})

it('puts --store before SLUICE_STORE', async () => {
  const run = await sluice('redis://127.0.0.1:1', ['overrides', '--store', `redis://127.0.0.1:${redis.port}`])
  expect(run.status).toBe(0)
})

describe('ends with 3 and one line where', () => {
  const refused = async (url: string, said: RegExp, args = ['overrides'], env = {}): Promise<void> => {
    const { status, stdout, stderr } = await sluice(url, args, env)
    expect(stderr).toMatch(/^sluice: .+\n$/)
    expect(stderr).toMatch(said)
    expect(stdout + stderr).not.toMatch(/hunter2|node_modules|\n\s+at /)
    expect([status, stdout]).toEqual([3, ''])
  }

  const none = () => ({})
  it.each<[what: string, said: RegExp, url: () => string, env: () => Record<string, string>]>([
    ['no authority is trusted', /NODE_EXTRA_CA_CERTS/, () => `rediss://:${PASSWORD}@127.0.0.1:${port}`, none],
    ['the certificate is of another name', /altnames/, () => `rediss://localhost:${port}`, trusted],
    ['the server speaks no TLS', /without TLS/, () => `rediss://127.0.0.1:${redis.port}`, trusted],
    ['the server speaks TLS alone', /with TLS/, () => `redis://:${PASSWORD}@127.0.0.1:${port}`, none],
    ['the password is wrong', /WRONGPASS/, () => `redis://u:${PASSWORD}@127.0.0.1:${redis.port}`, none],
    ['nothing listens', /ECONNREFUSED/, () => `redis://:${PASSWORD}@127.0.0.1:1`, none],
    ['no Postgres listens', /ECONNREFUSED/, () => `postgres://u:${PASSWORD}@127.0.0.1:1/db`, none],
    ['Postgres speaks no TLS', /SSL/, () => `${postgres.url}?sslmode=verify-full`, none],
  ])('%s', (...[, said, url, env]) => refused(url(), said, ['overrides'], env()))

  it('a user of Redis has no permission', async () => {
    await command(redis, 'ACL', 'SETUSER', 'u', 'on', `>p`, '~*', '+@all', '-scan', '-set', '-setrange')
    const url = `redis://u:p@127.0.0.1:${redis.port}`
    await refused(url, /NOPERM|permission/, ['blocked', ...POLICIES])
    await command(redis, 'ACL', 'SETUSER', 'v', 'on', `>p`, '~*', '+@all', '-eval', '-evalsha')
    await refused(`redis://v:p@127.0.0.1:${redis.port}`, /NOPERM|permission/, ['why', 'ann', ...POLICIES])
    await refused(`redis://v:p@127.0.0.1:${redis.port}`, /NOPERM|permission/, ['top', '--limiter', 'api'])
  })

  it('a user of Postgres has no permission, or the store has no table', async () => {
    const client = new Client(postgres.url)
    await client.connect()
    await client.query(`create role reader login password '${PASSWORD}'`)
    const url = postgres.url.replace('postgres@', `reader:${PASSWORD}@`)
    await refused(url, /table/)
    await sluice(postgres.url, ['overrides'])
    await client.query(
      'create unlogged table sluice (id uuid primary key, version bigint not null, expires bigint not null, state bytea not null)',
    )
    await refused(url, /permission/)
    await client.end()
  })
})
