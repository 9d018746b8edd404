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

  it.each(['idle', 'call'] as const)('ends by itself within 100 ms of close() (%s)', async (when) => {
    for (const options of [address(server), nodes(cluster)]) {
      expect((await run(program, when, options)).lingeredMs).toBeLessThan(100)
    }
  })

  it.each(['connected', 'called', 'subscribed'] as const)(
    'keeps no process alive that closes nothing (%s)',
    async (when) => {
      for (const options of [address(server), nodes(cluster)]) {
        const { reply, lingeredMs } = await run(program, when, options)
        expect(reply).toBe(when === 'connected' ? undefined : 'k')
        expect(lingeredMs).toBeLessThan(1000)
      }
    },
  )

  // node-redis waits for its next attempt by a timer of its own, which nothing reaches.
  const withPauses = name === 'redis' ? it.skip : it
  withPauses('keeps no process alive that closes nothing while nothing listens', async () => {
    const nobody = { host: '127.0.0.1', port: 1 }
    for (const options of [nobody, { cluster: [nobody] }]) {
      expect((await run(program, 'refused', options)).lingeredMs).toBeLessThan(1000)
    }
  })

  it('ends by itself within 100 ms of close() while nothing listens', async () => {
    const nobody = { host: '127.0.0.1', port: 1 }
    for (const options of [nobody, { cluster: [nobody] }]) {
      expect((await run(program, 'outage', options)).lingeredMs).toBeLessThan(100)
    }
  })

  it('ends by itself within 100 ms of close() while Redis is stopped', async () => {
    server.pause()
    const result = await run(program, 'outage', address(server))
    server.resume()
    expect(result.lingeredMs).toBeLessThan(100)
  })

  it('ends by itself within 100 ms of close() while it connects to a Redis that is stopped', async () => {
    server.pause()
    const result = await run(program, 'connecting', address(server))
    server.resume()
    expect(result.lingeredMs).toBeLessThan(100)
  })

  it('ends by itself within 100 ms of close() after the Cluster was stopped', async () => {
    const stop = () => cluster.masters.forEach((node) => node.pause())
    const result = await run(program, 'frozen', nodes(cluster), stop)
    cluster.masters.forEach((node) => node.resume())
    await cluster.ready()
    expect(result.lingeredMs).toBeLessThan(100)
  })
})

describe('a bundle without any client package', () => {
  it('starts, and rejects calls with CLIENT_MISSING', async () => {
    const program = await bundle('none.cjs', ['ioredis', 'iovalkey', 'redis'])
    const { code, message } = await run(program, 'call', address(server))
    expect(code).toBe('CLIENT_MISSING')
    expect(message).toContain('npm install ioredis (or iovalkey, or redis)')
  })

  it('refuses Sentinel with node-redis alone', async () => {
    const program = await bundle('no-sentinel.cjs', ['ioredis', 'iovalkey'])
    const { code } = await run(program, 'call', { sentinels: [address(server)], name: 'main' })
    expect(code).toBe('CLIENT_MISSING')
  })
})

type When = 'idle' | 'call' | 'connecting' | 'outage' | 'frozen' | Unclosed
/** What is not closed in the end. */
type Unclosed = 'connected' | 'called' | 'subscribed' | 'refused'

interface Outcome {
  readonly reply?: string
  readonly code?: string
  readonly message?: string
  /** From close(), or from the last answer where nothing is closed, to the end of the process, without the time in which others had the CPU. */
  readonly lingeredMs: number
}

const PROGRAM = `
  import { ownMs } from '../../../../../harness/src/figures/own-time.js'
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
  main().then((outcome) => {
    if (!['connected', 'called', 'subscribed', 'refused'].includes(when)) connection.close()
    const closed = ownMs()
    process.on('exit', () => console.log(JSON.stringify({ ...outcome, lingeredMs: ownMs() - closed })))
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
  const child = spawn(process.execPath, [program, when, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 30_000,
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (output !== 'ready') return
    onReady()
    child.stdin.write('go')
  })
  await once(child, 'close')
  return JSON.parse(output.slice(output.indexOf('{'))) as Outcome
}

function address({ host, port }: Address): Address {
  return { host, port }
}

function nodes({ masters }: Cluster): object {
  return { cluster: masters.map(address) }
}
