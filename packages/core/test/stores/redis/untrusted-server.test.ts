import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createServer as createTlsServer } from 'node:tls'
import { build } from 'esbuild'
import { Redis } from 'ioredis'
import { type SecureRedis, startSecureRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { createLimiter, gcra } from '../../../src/index.js'
import { type RedisStore, redisStore } from '../../../src/stores/redis/index.js'

jest.setTimeout(60_000)

const REDIS = join(__dirname, '../../../src/stores/redis')
/** A record of TLS that none may send in clear once both sides have keys. */
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 50])
const FAILS = 'connection.eval("return 1", [], []).catch(({ message }) => console.log(message))'
/** How a program reaches a server, by the module and what it does with `url`. */
const WAYS = {
  'a connection of our own': [
    'connection/own.ts',
    `const connection = new given.OwnConnection(url)
    ${FAILS}`,
  ],
  'a client that was handed in': [
    'clients/ioredis.ts',
    `const connection = given.ioredisConnection(new Redis(url, { maxRetriesPerRequest: 0 }))
    ${FAILS}`,
  ],
  'the subscriber of a client that was handed in': [
    'clients/ioredis.ts',
    `const connection = given.ioredisConnection(new Redis(url, { lazyConnect: true }))
    connection.subscribe('a', () => {})`,
  ],
} as const

let folder: string
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'sluice-untrusted-'))))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs a program in a process of its own, as an error of a socket that nothing hears ends one. */
async function run(way: keyof typeof WAYS, port: number) {
  const [module, code] = WAYS[way]
  const contents = `import { Redis } from 'ioredis'
    import * as given from '${join(REDIS, module)}'
    const url = 'rediss://127.0.0.1:${port}'
    ${code}
    setTimeout(() => process.exit(0), 500)`
  const stdin = { contents, resolveDir: __dirname }
  const program = join(folder, 'program.cjs')
  await build({ stdin, outfile: program, bundle: true, platform: 'node' })
  const child = spawn(process.execPath, [program])
  const [out, errors, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { out, errors, status: status as number }
}

it.each(Object.keys(WAYS) as (keyof typeof WAYS)[])(
  'a server whose certificate is not trusted ends no process by an error after it, by %s',
  async (way) => {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const made = ['-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...made], { stdio: 'ignore' })
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) })
    const front = createServer((client) => {
      const behind = connect((server.address() as AddressInfo).port).on('error', () => {})
      client.on('error', () => {}).on('close', () => behind.destroy())
      client.pipe(behind)
      behind.once('data', (flight: Buffer) => client.write(Buffer.concat([flight, ALERT])))
    })
    server.on('tlsClientError', () => {})
    await Promise.all([server, front].map((each) => once(each.listen(0, '127.0.0.1'), 'listening')))
    const { errors, status } = await run(way, (front.address() as AddressInfo).port)
    server.close()
    front.close()
    expect({ errors, status }).toEqual({ errors: '', status: 0 })
  },
)

describe('a Redis whose certificate is not trusted, asked by a client that was handed in', () => {
  let redis: SecureRedis
  beforeAll(async () => void (redis = await startSecureRedis()))
  afterAll(() => redis.stop())

  it('is named as the reason by ready() and by calls, and is decided by once it is trusted', async () => {
    const place = { host: redis.host, port: redis.securePort, maxRetriesPerRequest: 0 }
    const reason = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('self-signed certificate') }
    const clients = [{}, { ca: readFileSync(redis.caFile) }].map((tls) => new Redis({ ...place, tls }))
    const [refusing, trusting] = clients.map((client) => redisStore(client)) as [RedisStore, RedisStore]
    const settings = {
      policies: [gcra({ limit: 1, window: '1h' })],
      onStoreError: 'throw',
      deadline: '2s',
    } as const
    expectWarnings(['STORE_DEGRADED'])
    await expect(refusing.ready()).rejects.toMatchObject(reason)
    const limiter = createLimiter({ ...settings, name: 'a', store: refusing })
    await expect(limiter.consume('ann')).rejects.toMatchObject(reason)
    await trusting.ready()
    const other = createLimiter({ ...settings, name: 'a', store: trusting })
    expect(await other.consume('ann')).toMatchObject({ allowed: true, degraded: undefined })
    await Promise.all([refusing.close(), trusting.close()])
    for (const client of clients) client.disconnect()
  })
})
