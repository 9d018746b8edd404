import { onSources } from '@sluice/harness/processes'
import { freePort, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { transformSync } from '@swc/core'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

const FOLDER = resolve(__dirname, '../../recipes/deploy')
const text = (file: string) => readFileSync(join(FOLDER, file), 'utf8')
const SERVER = text('server.ts')
/** The environment that the server reads, and the paths of its probes. */
const READ = /const \{ (.+) \} = process\.env/.exec(SERVER)![1]!.match(/[A-Z_]+(?= =)/g)!
const PATHS = ['/live', '/ready']

interface Container {
  readonly name: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly readinessProbe: { readonly httpGet?: { readonly path: string; readonly port: string } }
  readonly livenessProbe?: { readonly httpGet: { readonly path: string; readonly port: string } }
}
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly replicas: number
    readonly selector: Readonly<Record<string, unknown>>
    readonly ports: readonly { readonly port: number; readonly targetPort: string }[]
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: { readonly containers: readonly Container[] }
    }
  }
}

const manifests = parseAllDocuments(text('kubernetes.yaml')).map((document) => {
  expect(document.errors).toEqual([])
  return document.toJS() as Manifest
})
const manifest = (kind: string, name: string) =>
  manifests.find((each) => each.kind === kind && each.metadata.name === name)!
const container = (name: string) => manifest('Deployment', name).spec.template.spec.containers[0]!
const compose = parse(text('compose.yaml')) as {
  services: Record<
    'api' | 'redis',
    {
      environment: Record<string, string>
      command: string[]
      ports: string[]
      healthcheck: { test: string[] }
    }
  >
}

it('Compose and Kubernetes set all that the server reads, and nothing else', () => {
  expect(READ).toEqual(['REDIS_URL', 'PORT', 'PROXIES'])
  expect(Object.keys(compose.services.api.environment).sort()).toEqual([...READ].sort())
  expect(
    container('api')
      .env!.map(({ name }) => name)
      .sort(),
  ).toEqual([...READ].sort())
})

it('ports are those that the server and Redis listen on, and names those of the services', () => {
  const env = Object.fromEntries(container('api').env!.map(({ name, value }) => [name, value]))
  expect(String(container('api').ports[0]!.containerPort)).toBe(env['PORT'])
  expect(compose.services.api.ports).toEqual([compose.services.api.environment['PORT']])
  const { hostname, port } = new URL(env['REDIS_URL']!)
  expect(manifest('Service', hostname).spec.ports[0]!.port).toBe(Number(port))
  expect(new URL(compose.services.api.environment['REDIS_URL']!).hostname in compose.services).toBe(true)
  for (const { kind, metadata, spec } of manifests.filter((each) => each.kind === 'Service')) {
    const { name, containerPort } = container(metadata.name).ports[0]!
    expect([kind, spec.ports[0]!.targetPort, containerPort > 0]).toEqual(['Service', name, true])
    expect(manifest('Deployment', metadata.name).spec.template.metadata.labels).toEqual(spec.selector)
  }
})

it('Redis evicts nothing, saves nothing, and is one', () => {
  const settings = ['redis-server', '--maxmemory', '256mb', '--maxmemory-policy', 'noeviction', '--save', '']
  expect(compose.services.redis.command).toEqual([...settings, '--appendonly', 'no'])
  expect(container('limits-redis').args).toEqual(compose.services.redis.command)
  expect(manifest('Deployment', 'limits-redis').spec.replicas).toBe(1)
  expect(manifest('Deployment', 'api').spec.replicas).toBeGreaterThan(1)
})

it('probes ask for paths that the server has', () => {
  const { readinessProbe, livenessProbe } = container('api')
  expect([livenessProbe!.httpGet, readinessProbe.httpGet]).toEqual(
    PATHS.map((path) => ({ path, port: container('api').ports[0]!.name })),
  )
  const { PORT } = compose.services.api.environment
  expect(compose.services.api.healthcheck.test.at(-1)).toBe(`http://127.0.0.1:${PORT}/ready`)
})

describe('the server', () => {
  let folder: string
  let redis: RedisServer
  const children: ChildProcess[] = []
  beforeAll(async () => {
    // Inside of the repository, where the packages are found as in an application that has installed them.
    folder = mkdtempSync(join(__dirname, '.deploy-'))
    const jsc = { target: 'es2022', parser: { syntax: 'typescript' } } as const
    const { code } = transformSync(SERVER, { jsc, module: { type: 'es6' } })
    writeFileSync(join(folder, 'server.mjs'), code)
    // One that does not decide alone where Redis is slow for a moment.
    writeFileSync(join(folder, 'patient.mjs'), code.replace(/^ +store$/m, "$&, deadline: '10s'"))
    redis = await startRedis()
  }, 20_000)
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  })
  afterAll(async () => {
    await redis.stop()
    rmSync(folder, { recursive: true })
  })

  /** Starts the server as Compose does, and returns when it is ready. */
  async function start(file: string, url = `redis://${redis.host}:${redis.port}`) {
    const port = await freePort()
    const env = { ...process.env, PORT: String(port), REDIS_URL: url, PROXIES: '1' }
    const child = spawn(process.execPath, [...onSources(), join(folder, file)], {
      env,
      stdio: 'ignore',
    })
    children.push(child)
    const get = async (path: string, address = '203.0.113.7') => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        headers: { 'x-forwarded-for': address },
      })
      await response.arrayBuffer()
      return { status: response.status, left: response.headers.get('x-ratelimit-remaining') }
    }
    await until('the server is ready', () =>
      get('/ready').then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
    return { child, get }
  }

  it('shares one limit with others, and counts no probe', async () => {
    const [one, other] = [await start('patient.mjs'), await start('patient.mjs')]
    for (let i = 0; i < 3; i++) for (const path of PATHS) expect((await one.get(path)).left).toBeNull()
    const left = [await one.get('/'), await other.get('/'), await one.get('/')].map((each) => each.left)
    expect(left).toEqual(['99', '98', '97'])
  }, 30_000)

  it('is ready and serves without Redis, and ends by itself when it is told to', async () => {
    const { child, get } = await start('server.mjs', `redis://127.0.0.1:${await freePort()}`)
    expect(await get('/')).toEqual({ status: 200, left: '99' })
    expect((await get('/ready')).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  }, 30_000)
})
