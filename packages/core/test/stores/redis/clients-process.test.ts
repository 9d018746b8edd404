import { build } from 'esbuild'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, type Cluster, type RedisServer, startCluster, startRedis } from '@sluice/harness/redis'

jest.setTimeout(60_000)

const SOURCES = join(__dirname, '../../../src/stores/redis/connection')
const folder = mkdtempSync(join(tmpdir(), 'sluice-process-'))
let server: RedisServer
let cluster: Cluster
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
})
afterAll(async () => {
  await Promise.all([server.stop(), cluster.stop()])
  rmSync(folder, { recursive: true })
})

describe.each([
  ['ioredis', []],
  ['iovalkey', ['ioredis']],
  ['redis', ['ioredis', 'iovalkey']],
])('a bundle in an empty folder that holds %s', (name, missing) => {
  let program: string
  beforeAll(async () => {
    program = await bundle(`${name}.cjs`, missing)
  })

  it('reaches Redis and a Cluster with the client package in it', async () => {
    expect(await run(program, 'call', address(server))).toMatchObject({ reply: 'k' })
    expect(await run(program, 'call', nodes(cluster))).toMatchObject({ reply: 'k' })
  })

  it.each(['idle', 'call'] as const)(
    'ends by itself after close(), with no wait above 100 ms (%s)',
    async (when) => {
      for (const options of [address(server), nodes(cluster)]) {
        expectEnd(await run(program, when, options))
      }
    },
  )

  it.each(['connected', 'called', 'subscribed'] as const)(
    'keeps no process alive that closes nothing (%s)',
    async (when) => {
      for (const options of [address(server), nodes(cluster)]) {
        const outcome = await run(program, when, options)
        expect(outcome.reply).toBe(when === 'connected' ? undefined : 'k')
        expectEnd(outcome)
      }
    },
  )

  // node-redis waits for its next attempt by a timer of its own, which nothing reaches.
  const withPauses = name === 'redis' ? it.skip : it
  withPauses('keeps no process alive that closes nothing while nothing listens', async () => {
    const nobody = { host: '127.0.0.1', port: 1 }
    for (const options of [nobody, { cluster: [nobody] }]) {
      expectEnd(await run(program, 'refused', options))
    }
  })

  it('ends by itself after close(), with no wait above 100 ms, while nothing listens', async () => {
    const nobody = { host: '127.0.0.1', port: 1 }
    for (const options of [nobody, { cluster: [nobody] }]) {
      expectEnd(await run(program, 'outage', options))
    }
  })

  it('ends by itself after close(), with no wait above 100 ms, while Redis is stopped', async () => {
    server.pause()
    const result = await run(program, 'outage', address(server))
    server.resume()
    expectEnd(result)
  })

  it('ends by itself after close(), with no wait above 100 ms, while it connects to a Redis that is stopped', async () => {
    server.pause()
    const result = await run(program, 'connecting', address(server))
    server.resume()
    expectEnd(result)
  })

  it('ends by itself after close(), with no wait above 100 ms, after the Cluster was stopped', async () => {
    const stop = () => cluster.masters.forEach((node) => node.pause())
    const result = await run(program, 'frozen', nodes(cluster), stop)
    cluster.masters.forEach((node) => node.resume())
    await cluster.ready()
    expectEnd(result)
  })
})

/** A process that does not end is killed, and then has said nothing. */
function expectEnd({ waitedMs, stderr }: Outcome): void {
  expect(stderr).toBe('')
  expect(waitedMs).toBeLessThanOrEqual(100)
}

describe('a bundle without any client package', () => {
  it('starts, and rejects calls with CLIENT_MISSING', async () => {
    const program = await bundle('none.cjs', ['ioredis', 'iovalkey', 'redis'])
    const { code, message, stderr } = await run(program, 'call', address(server))
    expect(code).toBe('CLIENT_MISSING')
    expect(stderr).toContain('[CLIENT_MISSING] SluiceWarning: ')
    expect(message).toContain('npm install ioredis (or iovalkey, or redis)')
  })

  it('refuses Sentinel with node-redis alone', async () => {
    const program = await bundle('no-sentinel.cjs', ['ioredis', 'iovalkey'])
    const { code, stderr } = await run(program, 'call', { sentinels: [address(server)], name: 'main' })
    expect(code).toBe('CLIENT_MISSING')
    expect(stderr).toContain('[CLIENT_MISSING] SluiceWarning: ')
  })
})

type When = 'idle' | 'call' | 'connecting' | 'outage' | 'frozen' | Unclosed
/** What is not closed in the end. */
type Unclosed = 'connected' | 'called' | 'subscribed' | 'refused'

interface Outcome {
  readonly reply?: string
  readonly code?: string
  readonly message?: string
  /** Milliseconds of the timers that kept the process alive and ran out between close(), or the last answer, and the end of the process, together. */
  readonly waitedMs: number
  readonly stderr: string
}

const PROGRAM = `
  import { createHook } from 'node:async_hooks'
  import { OwnConnection } from './own.js'
  const [when, options] = [process.argv[2], JSON.parse(process.argv[3])]
  const connection = new OwnConnection(options)
  const key = Buffer.from('k')
  const call = () => connection.eval('return ARGV[1]', [key], [key])
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  async function main() {
    if (when === 'idle') return pause(300)
    if (when === 'connecting') return call().catch(() => {}), pause(0)
    if (when === 'outage') return call().catch(() => {}), pause(300)
    if (when === 'connected') return connection.connect()
    if (when === 'called') await connection.connect(), await pause(50)
    if (when === 'refused') return connection.connect().catch(() => {})
    if (when === 'subscribed') {
      const heard = new Promise((resolve) => connection.subscribe('channel', resolve))
      const publish = () => connection.eval("return tostring(redis.call('publish', 'channel', 'k'))", [key], [])
      const timer = setInterval(() => publish().catch(() => {}), 50)
      const reply = await heard
      clearInterval(timer)
      return { reply }
    }
    const outcome = await call().then((reply) => ({ reply: String(reply) }), ({ code, message }) => ({ code, message }))
    if (when.startsWith('call')) return outcome
    process.stdout.write('ready')
    await new Promise((resolve) => process.stdin.once('data', resolve))
    process.stdin.destroy()
    call().catch(() => {})
    await pause(300)
  }
  const timers = new Map()
  let waitedMs = 0
  createHook({
    init: (id, type, _, timer) => void (type === 'Timeout' && timers.set(id, { timer, ms: timer._idleTimeout })),
    before(id) {
      const { timer, ms } = timers.get(id) ?? {}
      if (timer?.hasRef()) waitedMs += ms
    },
  }).enable()
  main().then((outcome) => {
    if (!['connected', 'called', 'subscribed', 'refused'].includes(when)) connection.close()
    waitedMs = 0
    process.on('exit', () => console.log(JSON.stringify({ ...outcome, waitedMs })))
  })
`

/** Nothing can be found from where it lies but what it holds; `missing` are packages that it looks for in vain. */
async function bundle(name: string, missing: readonly string[]): Promise<string> {
  const outfile = join(folder, name)
  const stdin = { contents: PROGRAM, resolveDir: SOURCES, loader: 'ts' as const }
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'cjs', external: [...missing] })
  return outfile
}

async function run(program: string, when: When, options: object, onReady = () => {}): Promise<Outcome> {
  const child = spawn(process.execPath, [program, when, JSON.stringify(options)], { timeout: 20_000 })
  let [output, stderr] = ['', '']
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (output !== 'ready') return
    onReady()
    child.stdin.write('go')
  })
  await once(child, 'close')
  return { ...(JSON.parse(output.slice(output.indexOf('{'))) as Outcome), stderr }
}

function address({ host, port }: Address): Address {
  return { host, port }
}

function nodes({ masters }: Cluster): object {
  return { cluster: masters.map(address) }
}
