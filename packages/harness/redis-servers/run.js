// What speaks Redis: npm run verify -- redis-servers [--server URL] [--write]. Servers and proxies of Debian on loopback, and what
// `--server` names, are asked the same: whether limits are exact on them. Prints where the table of docs/which-redis.md differs from what
// was seen, with exit 1; --write writes it. What `--server` names is printed alone, and gets keys of its own that expire by themselves.
import '@sluice/calendar'
import { consumeAll, createLimiter, createSemaphore, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { algorithms } from '@sluice/core/store'
import { freePort, startRedis, startSecureRedis } from '@sluice/harness/redis'
import { Redis } from 'ioredis'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { missingProgram } from '../../../scripts/programs.js'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'
import { started, versionBy } from '../../../scripts/verify/started.js'
import { writeOrCompare } from '../../../scripts/verify/written-tables.js'

const PAGE = fileURLToPath(new URL('../../../docs/which-redis.md', import.meta.url))
// prettier-ignore
const TITLES = ['server', 'version', 'connects', 'algorithms that admit 3 of 5', '40 keys at once, of which each admits 5 of 10', 'two keys together', 'a semaphore', 'warnings']
const LIMITED = { limit: 3, window: '30s' }
/** Nothing is answered from what this process remembers, as other processes do not. */
const ASKING = { denialCache: false }
let rowsAsked = 0

const named = process.argv.indexOf('--server')
if (named > 0) {
  const row = await look('the server', 'as it says', by(process.argv[named + 1]))
  TITLES.forEach((title, i) => console.log(`${title.padEnd(48)}${row[i]}`))
} else writeOrCompare(PAGE, { servers: [TITLES, ...(await ofDebian())] })

async function ofDebian() {
  const missing = missingProgram('redisProxies')
  if (missing) throw new Error(missing)
  const folder = temporaryFolder('redis-servers')
  const [first, second] = [await startRedis(), await startRedis()]
  const secure = await startSecureRedis()
  const [one, two] = [await nutcracker(folder, [first]), await nutcracker(folder, [first, second])]
  const balanced = await haproxy(folder, first)
  const [redis, of] = [versionBy('redis-server', '--version'), versionBy('nutcracker', '-V')]
  const tls = `rediss://127.0.0.1:${secure.securePort}`
  const unready = { enableReadyCheck: false, disableClientInfo: true, protocol: 2 }
  // prettier-ignore
  const rows = [
    ['redis-server, by a URL', redis, by(`redis://127.0.0.1:${first.port}`)],
    ['redis-server, by an ioredis client', redis, handed(first)],
    ['redis-server, TLS, by `rediss://` and its CA', redis, by({ url: tls, tls: { ca: readFileSync(secure.caFile) } })],
    ['redis-server, TLS, by `rediss://` alone', redis, by(tls)],
    ['nutcracker, one server, by a URL', of, by(`redis://127.0.0.1:${one.port}`)],
    ['nutcracker, one server, by an ioredis client', of, handed(one)],
    ['nutcracker, one server, by that client', of, handed(one, unready)],
    ['nutcracker, two servers, by that client', of, handed(two, unready)],
    ['nutcracker, two servers, by that client, `groupCommit: false`', of, handed(two, unready, { groupCommit: false })],
    ['HAProxy, `mode tcp`, by a URL', versionBy('haproxy', '-v'), by(`redis://127.0.0.1:${balanced.port}`)],
  ]
  const seen = []
  for (const row of rows) seen.push(await look(...row))
  for (const { stop } of [balanced, one, two, secure, first, second]) await stop()
  return seen
}

/** A store by a connection of its own, and one by a client that is handed in. */
function by(place) {
  return () => ({ store: redisStore(place, ASKING), end() {} })
}

function handed({ port }, options, settings) {
  return () => {
    const client = new Redis({ port, maxRetriesPerRequest: 0, ...options }).on('error', () => {})
    return { store: redisStore(client, { ...ASKING, ...settings }), end: () => client.disconnect() }
  }
}

/** One row: whether limits of every kind are exact over this connection. */
async function look(name, version, open) {
  const { store, end } = open()
  const warnings = new Set()
  // Names of its own, as a server may be asked twice, and one that is named may be in use.
  const run = `verify-${process.pid}-${Date.now()}-${++rowsAsked}`
  const limiter = (of, policies) => {
    const name = `${run}-${of}`
    const made = createLimiter({ name, policies, store, onStoreError: 'throw', deadline: '2s' })
    made.on('warning', ({ code }) => warnings.add(code))
    return made
  }
  const connects = await attempt(async () => (await store.ready(), 'yes'))
  const cells = [
    await attempt(async () => {
      const exact = []
      for (const [name, factory] of Object.entries(algorithms)) {
        const policy = factory('window' in factory.options ? LIMITED : { limit: 3, every: 'day' })
        if ((await admitted(limiter(name, [policy]), Array(5).fill('a'))) === 3) exact.push(name)
      }
      return exact.length === Object.keys(algorithms).length ? 'all' : exact.join(', ') || 'none'
    }),
    await attempt(async () => {
      // Names decide which servers keys are on, so several are tried.
      for (let round = 0; round < 8; round++) {
        const keys = Array.from({ length: 400 }, (_, i) => `key ${i % 40}`)
        const count = await admitted(limiter(`many-${round}`, [gcra({ limit: 5, window: '1m' })]), keys)
        if (count !== 200) return count > 200 ? '**more than 5**' : `**${count} of 200**`
      }
      return 'exactly'
    }),
    await attempt(async () => {
      const one = limiter('one', [gcra(LIMITED)])
      const two = limiter('two', [gcra({ limit: 1, window: '30s' })])
      for (let round = 0; round < 8; round++) {
        const parts = [
          { limiter: one, key: `${round}, one of several keys` },
          { limiter: two, key: `${round}, another of several` },
        ]
        const [whole, denied] = [await consumeAll(parts), await consumeAll(parts)]
        const left = (await one.peek(parts[0].key)).remaining
        if (!whole.allowed || denied.allowed || left !== 2) return `**${left} left of 3 after one**`
        if ((await two.consume(parts[1].key)).allowed) return '**and one more alone**'
      }
      return 'all or none'
    }),
    await attempt(async () => {
      const semaphore = createSemaphore({ name: `${run}-permits`, limit: 1, lease: '5s', store })
      const held = await semaphore.acquire('a', { maxWait: 0 })
      const other = await semaphore.acquire('a', { maxWait: 0 })
      await held.release()
      return held.allowed && !other.allowed ? 'one of one' : '**not exact**'
    }),
  ]
  await attempt(() => store.close())
  end()
  return [name, version, connects, ...cells, [...warnings].join(', ') || 'none']
}

async function admitted(limiter, keys) {
  const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
  return decisions.filter(({ allowed }) => allowed).length
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

async function nutcracker(folder, servers) {
  const stats = await freePort()
  const list = servers.map(({ port: of }, i) => `\n    - 127.0.0.1:${of}:1 s${i}`).join('')
  const textOf = (port) =>
    `limits:\n  listen: 127.0.0.1:${port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  servers:${list}\n`
  return started('nutcracker', folder, textOf, (file) => ['-c', file, '-s', `${stats}`, '-a', '127.0.0.1'])
}

function haproxy(folder, { port: of }) {
  const textOf = (port) =>
    `defaults\n mode tcp\n timeout client 60s\n timeout server 60s\n timeout connect 5s\nlisten redis\n bind 127.0.0.1:${port}\n server s 127.0.0.1:${of}\n`
  return started('haproxy', folder, textOf, (file) => ['-f', file])
}
