// What speaks Redis: npm run verify -- redis-servers [--server URL] [--write]. Servers and proxies of Debian on loopback, and what
// `--server` names, are asked the same: whether limits are exact on them. Prints where the table of docs/which-redis.md differs from what
// was seen, with exit 1; --write writes it. What `--server` names is printed alone, and gets keys of its own that expire within a minute.
import * as core from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { freePort, startRedis, until } from '@sluice/harness/redis'
import { Redis } from 'ioredis'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missingProgram } from '../../../scripts/programs.js'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'
import { writeOrCompare } from '../../../scripts/verify/written-tables.js'

process.env.PATH += ':/usr/sbin' // where Debian has its servers
const PAGE = fileURLToPath(new URL('../../../docs/which-redis.md', import.meta.url))
const TITLES = [
  'server',
  'version',
  'reached by',
  'connects',
  'algorithms that admit 3 of 5',
  '40 keys at once, of which each admits 5 of 10',
  'two keys together',
  'a semaphore',
  'warnings',
]
const LIMITED = { limit: 3, window: '30s' }
const ALGORITHMS = ['fixedWindow', 'slidingLog', 'slidingWindow', 'tokenBucket', 'leakyBucket', 'gcra']
/** Nothing is answered from what this process remembers, as other processes do not. */
const ASKING = { denialCache: false }
let rowsAsked = 0

const named = process.argv.indexOf('--server')
if (named > 0) {
  const row = await look('the server', 'as it says', 'its URL', () => ({
    store: redisStore(process.argv[named + 1], ASKING),
    end() {},
  }))
  TITLES.forEach((title, i) => console.log(`${title.padEnd(48)}${row[i]}`))
} else
  writeOrCompare(PAGE, { servers: [TITLES.filter((title) => title !== 'reached by'), ...(await ofDebian())] })

async function ofDebian() {
  const missing = missingProgram('redisProxies')
  if (missing) console.log(`skipped  the proxies: ${missing}`)
  const folder = temporaryFolder('redis-servers')
  const [first, second] = [await startRedis(), await startRedis()]
  const secure = await startSecure(folder)
  const proxies = missing
    ? []
    : [
        await nutcracker(folder, [first]),
        await nutcracker(folder, [first, second]),
        await haproxy(folder, first),
      ]
  const version = /v=([\d.]+)/.exec(
    spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout,
  )?.[1]
  const url = (port) => () => ({ store: redisStore(`redis://127.0.0.1:${port}`, ASKING), end() {} })
  const handed = (port, options, settings) => () => {
    const client = new Redis({ port, maxRetriesPerRequest: 0, ...options })
    client.on('error', () => {})
    return { store: redisStore(client, { ...ASKING, ...settings }), end: () => client.disconnect() }
  }
  const rows = [
    ['redis-server', version, 'a URL', url(first.port)],
    ['redis-server', version, 'an ioredis client', handed(first.port)],
    [
      'redis-server, TLS',
      version,
      '`rediss://` and its CA',
      () => ({
        store: redisStore({ url: `rediss://127.0.0.1:${secure.port}`, tls: { ca: secure.ca } }, ASKING),
        end() {},
      }),
    ],
    [
      'redis-server, TLS',
      version,
      '`rediss://` alone',
      () => ({ store: redisStore(`rediss://127.0.0.1:${secure.port}`, ASKING), end() {} }),
    ],
  ]
  if (!missing) {
    const [one, two, balanced] = proxies
    const of = /\d+\.\d+\.\d+/.exec(spawnSync('nutcracker', ['-V'], { encoding: 'utf8' }).stderr)?.[0]
    const ofHaproxy = /\d+\.\d+\.\d+/.exec(spawnSync('haproxy', ['-v'], { encoding: 'utf8' }).stdout)?.[0]
    const unready = { enableReadyCheck: false, disableClientInfo: true, protocol: 2 }
    rows.push(
      ['nutcracker, one server', of, 'a URL', url(one.port)],
      ['nutcracker, one server', of, 'an ioredis client', handed(one.port)],
      ['nutcracker, one server', of, 'that client', handed(one.port, unready)],
      ['nutcracker, two servers', of, 'that client', handed(two.port, unready)],
      [
        'nutcracker, two servers',
        of,
        'that client, `groupCommit: false`',
        handed(two.port, unready, { groupCommit: false }),
      ],
      ['HAProxy, `mode tcp`', ofHaproxy, 'a URL', url(balanced.port)],
    )
  }
  const seen = []
  for (const [name, of, how, open] of rows) seen.push(await look(name, `${of}`, how, open))
  for (const { stop } of [...proxies, secure, first, second]) await stop()
  return seen.map(([name, of, how, ...rest]) => [`${name}, by ${how}`, of, ...rest])
}

/** One row: whether limits of every kind are exact over this connection. */
async function look(name, version, how, open) {
  const { store, end } = open()
  const warnings = new Set()
  // Names of its own, as a server may be asked twice, and one that is named may be in use.
  const run = `verify-${process.pid}-${Date.now()}-${++rowsAsked}`
  const limiter = (of, policies) => {
    const made = core.createLimiter({
      name: `${run}-${of}`,
      policies,
      store,
      onStoreError: 'throw',
      deadline: '2s',
    })
    made.on('warning', ({ code }) => warnings.add(code))
    return made
  }
  const connects = await attempt(async () => (await store.ready(), 'yes'))
  const cells = [
    await attempt(async () => {
      const exact = []
      for (const algorithm of ALGORITHMS)
        if ((await admitted(limiter(algorithm, [core[algorithm](LIMITED)]), Array(5).fill('a'))) === '3')
          exact.push(algorithm)
      return exact.length === ALGORITHMS.length ? 'all six' : exact.join(', ') || 'none'
    }),
    await attempt(async () => {
      // Names decide which servers keys are on, so several are tried.
      for (let round = 0; round < 8; round++) {
        const keys = Array.from({ length: 400 }, (_, i) => `key ${i % 40}`)
        const count = await admitted(limiter(`many-${round}`, [core.gcra({ limit: 5, window: '1m' })]), keys)
        if (count !== '200') return Number(count) > 200 ? '**more than 5**' : `**${count} of 200**`
      }
      return 'exactly'
    }),
    await attempt(async () => {
      const [one, two] = [
        limiter('one', [core.gcra(LIMITED)]),
        limiter('two', [core.gcra({ limit: 1, window: '30s' })]),
      ]
      for (let round = 0; round < 8; round++) {
        const parts = [
          { limiter: one, key: `${round}, one of several keys` },
          { limiter: two, key: `${round}, another of several` },
        ]
        const [whole, denied] = [await core.consumeAll(parts), await core.consumeAll(parts)]
        const left = (await one.peek(parts[0].key)).remaining
        if (!whole.allowed || denied.allowed || left !== 2) return `**${left} left of 3 after one**`
        if ((await two.consume(parts[1].key)).allowed) return '**and one more alone**'
      }
      return 'all or none'
    }),
    await attempt(async () => {
      const semaphore = core.createSemaphore({ name: `${run}-permits`, limit: 1, lease: '5s', store })
      const held = await semaphore.acquire('a', { maxWait: 0 })
      const other = await semaphore.acquire('a', { maxWait: 0 })
      await held.release()
      return held.allowed && !other.allowed ? 'one of one' : '**not exact**'
    }),
  ]
  await attempt(() => store.close())
  end()
  return [name, version, how, connects, ...cells, [...warnings].join(', ') || 'none']
}

async function admitted(limiter, keys) {
  const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
  return String(decisions.filter(({ allowed }) => allowed).length)
}

/** What an act gives, or how it failed: a connection that the other side closes does so at one point or another. */
async function attempt(act) {
  try {
    return await act()
  } catch (error) {
    const { message } = error.cause instanceof Error ? error.cause : error
    return `no: ${/EPIPE|ECONNRESET|closed|not connected|max retries/i.test(message) ? 'closed' : message.split('\n')[0].replaceAll('|', '/').slice(0, 70)}`
  }
}

/** A program that listens on a port of its own. */
async function listening(program, args, port) {
  const child = spawn(program, args, { stdio: 'ignore' })
  const answers = () =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true))).once('error', () =>
        resolve(false),
      )
    })
  await until(program, answers, 10_000)
  const stop = async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return { port, stop }
}

async function nutcracker(folder, servers) {
  const [port, stats] = [await freePort(), await freePort()]
  const file = join(folder, `nutcracker-${port}.yml`)
  const list = servers.map(({ port: of }, i) => `\n    - 127.0.0.1:${of}:1 s${i}`).join('')
  writeFileSync(
    file,
    `limits:\n  listen: 127.0.0.1:${port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  servers:${list}\n`,
  )
  return listening('nutcracker', ['-c', file, '-s', String(stats), '-a', '127.0.0.1'], port)
}

async function haproxy(folder, { port: of }) {
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `defaults\n mode tcp\n timeout client 60s\n timeout server 60s\n timeout connect 5s\nlisten redis\n bind 127.0.0.1:${port}\n server s 127.0.0.1:${of}\n`,
  )
  return listening('haproxy', ['-f', file], port)
}

/** A server with a certificate that its own CA, which is itself, has signed. */
async function startSecure(folder) {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject],
    { stdio: 'ignore' },
  )
  const port = await freePort()
  const args = [
    '--port',
    '0',
    '--tls-port',
    String(port),
    '--tls-cert-file',
    cert,
    '--tls-key-file',
    key,
    '--tls-auth-clients',
    'no',
    '--save',
    '',
    '--dir',
    folder,
  ]
  return { ...(await listening('redis-server', args, port)), ca: readFileSync(cert, 'utf8') }
}
