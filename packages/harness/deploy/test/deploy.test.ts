import { onSources } from '@sluice/harness/processes'
import { freePort, pipeline, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { transformSync } from '@swc/core'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { parse, parseAllDocuments } = createRequire(__filename)('yaml') as {
  parse: (text: string) => unknown
  parseAllDocuments: (text: string) => readonly { readonly errors: readonly Error[]; toJS(): unknown }[]
}

const FOLDER = resolve('docs/recipes/deploy')
const text = (file: string) => readFileSync(join(FOLDER, file), 'utf8')
const SERVER = text('server.ts')
/** The environment that the server reads, and the paths of its probes. */
const READ = /const \{ (.+) \} = process\.env/.exec(SERVER)![1]!.match(/[A-Z_]+(?= =)/g)!
const PATHS = ['/live', '/ready']

interface Container {
  readonly name: string
  readonly args?: readonly string[]
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[]
  readonly securityContext: object
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
      readonly spec: {
        readonly automountServiceAccountToken: boolean
        readonly securityContext: { readonly runAsUser: number }
        readonly containers: readonly Container[]
      }
    }
    readonly podSelector: { readonly matchLabels: object }
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
      networks: string[]
      ports: string[]
      healthcheck: { test: string[] }
    }
  >
}

/** The secret of the recipe, as `openssl rand -hex 32` makes it. */
const PASSWORD = '0123456789abcdef'.repeat(4)

/** The environment of a container as Kubernetes makes it: with the secret, and names behind `$` replaced by what stands before. */
function environmentOf(name: string): Record<string, string> {
  const set: Record<string, string> = {}
  for (const { name: key, value, valueFrom } of container(name).env) {
    if (valueFrom) expect(valueFrom).toEqual({ secretKeyRef: { name: 'limits-redis', key: 'password' } })
    set[key] = valueFrom ? PASSWORD : replacedIn(value!, set)
  }
  return set
}
const replacedIn = (text: string, set: Readonly<Record<string, string>>): string =>
  text.replace(/\$\((\w+)\)/g, (all, name: string) => set[name] ?? all)

it('Compose and Kubernetes set all that the server reads, and nothing else but the password', () => {
  expect(READ).toEqual(['REDIS_URL', 'PORT', 'PROXIES'])
  expect(Object.keys(compose.services.api.environment).sort()).toEqual([...READ].sort())
  const { REDIS_PASSWORD, ...read } = environmentOf('api')
  expect([REDIS_PASSWORD, Object.keys(read).sort()]).toEqual([PASSWORD, [...READ].sort()])
})

it('ports are those that the server and Redis listen on, and names those of the services', () => {
  const env = environmentOf('api')
  expect(String(container('api').ports[0]!.containerPort)).toBe(env['PORT'])
  expect(compose.services.api.ports).toEqual([compose.services.api.environment['PORT']])
  const { hostname, port, password } = new URL(env['REDIS_URL']!)
  expect(password).toBe(PASSWORD)
  expect(manifest('Service', hostname).spec.ports[0]!.port).toBe(Number(port))
  expect(
    new URL(ofCompose(compose.services.api.environment['REDIS_URL']!)).hostname in compose.services,
  ).toBe(true)
  for (const { kind, metadata, spec } of manifests.filter((each) => each.kind === 'Service')) {
    const { name, containerPort } = container(metadata.name).ports[0]!
    expect([kind, spec.ports[0]!.targetPort, containerPort > 0]).toEqual(['Service', name, true])
    expect(manifest('Deployment', metadata.name).spec.template.metadata.labels).toEqual(spec.selector)
  }
})

/** A text of compose.yaml as Compose reads it, with the password of `.env`. */
const ofCompose = (text: string): string => text.replace(/\$\{REDIS_PASSWORD:\?[^}]+\}/g, PASSWORD)

it('manifests are of the types of Kubernetes', () => {
  const folder = mkdtempSync(join(__dirname, '.deploy-'))
  try {
    const types = [...new Set(manifests.map(({ kind }) => kind))].map((kind) => {
      const group = { Deployment: 'apps', NetworkPolicy: 'networking' }[kind] ?? 'core'
      return `import type { ${kind} } from 'kubernetes-types/${group}/v1'`
    })
    const values = manifests.map((each, i) => `export const m${i}: ${each.kind} = ${JSON.stringify(each)}`)
    writeFileSync(join(folder, 'manifests.ts'), [...types, ...values].join('\n'))
    const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [], module: 'preserve' }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    // A literal with a name that the type has not is an error, in each object of it.
    const tsc = resolve('node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
    expect(stdout).toBe('')
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 60_000)

describe('as it stands', () => {
  it('no proxy is trusted', () => {
    expect(SERVER).toContain("PROXIES = '0'")
    expect([environmentOf('api')['PROXIES'], compose.services.api.environment['PROXIES']]).toEqual(['0', '0'])
  })

  it('nothing runs as root, writes to its image, or gains what it has not', () => {
    const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
    expect(deployments).toHaveLength(2)
    for (const { spec } of deployments) {
      const { securityContext, automountServiceAccountToken, containers } = spec.template.spec
      expect(automountServiceAccountToken).toBe(false)
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(securityContext.runAsUser).toBeGreaterThan(0)
      for (const each of containers)
        expect(each.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
    expect(text('Dockerfile')).toMatch(/^USER 1000$/m)
    const safe = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }
    for (const service of Object.values(compose.services)) expect(service).toMatchObject(safe)
    expect(compose.services.redis).toMatchObject({ user: '999:1000' })
  })

  it('Redis answers the server alone, and who has the password', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy').map(({ spec }) => spec)
    const ofRedis = { podSelector: { matchLabels: { app: 'limits-redis' } } }
    const ofApi = { podSelector: { matchLabels: { app: 'api' } } }
    expect(policies).toEqual([
      expect.objectContaining({
        ...ofApi,
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ ports: [{ port: 'http' }] }],
      }),
      {
        ...ofRedis,
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ from: [ofApi], ports: [{ port: 'redis' }] }],
      },
    ])
    for (const { podSelector } of policies)
      expect(
        manifests.filter(
          ({ kind, spec }) =>
            kind === 'Deployment' &&
            isDeepStrictEqual(spec.template.metadata.labels, podSelector.matchLabels),
        ),
      ).toHaveLength(1)
    expect(compose).toMatchObject({ networks: { limits: { internal: true } } })
    expect([compose.services.redis.networks, compose.services.redis.ports]).toEqual([['limits'], undefined])
    // No secret stands in a file.
    expect(text('kubernetes.yaml') + text('compose.yaml')).not.toMatch(
      /kind: Secret|requirepass [^$]|:\/\/:[^$]/,
    )
  })
})

/** The settings of Redis in the manifest, with the password. */
const redisArgs = (): string[] =>
  container('limits-redis').args!.map((each) => replacedIn(each, environmentOf('limits-redis')))

it('Redis evicts nothing, saves nothing, asks for the password, and is one', () => {
  const settings = ['redis-server', '--maxmemory', '256mb', '--maxmemory-policy', 'noeviction', '--save', '']
  expect(redisArgs()).toEqual([...settings, '--appendonly', 'no', '--requirepass', PASSWORD])
  expect(compose.services.redis.command.map(ofCompose)).toEqual(redisArgs())
  expect(ofCompose(compose.services.redis.environment['REDISCLI_AUTH']!)).toBe(PASSWORD)
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
    redis = await startRedis({ args: redisArgs().slice(1) })
  }, 20_000)
  beforeEach(() => pipeline(redis, [['AUTH', PASSWORD], ['FLUSHALL']]))
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

  /** Starts the server with the environment of its manifest but for its places, and returns when it is ready. */
  async function start(file: string, more: Readonly<Record<string, string>> = {}) {
    const port = await freePort()
    const { REDIS_URL, ...set } = environmentOf('api')
    const url = REDIS_URL!.replace('limits-redis:6379', `${redis.host}:${redis.port}`)
    const env = { ...process.env, ...set, REDIS_URL: url, PORT: String(port), ...more }
    const child = spawn(process.execPath, [...onSources(), join(folder, file)], {
      env,
      stdio: 'ignore',
    })
    children.push(child)
    const get = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
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

  /** Asks 250 times, each time with other headers, and returns how often it was served. */
  async function servedOf(
    get: Awaited<ReturnType<typeof start>>['get'],
    headersOf: (i: number) => Record<string, string>,
  ) {
    let served = 0
    for (let i = 0; i < 250; i++) if ((await get('/', headersOf(i))).status === 200) served++
    return served
  }
  const addressOf = (i: number) => `203.0.113.${i}`

  it.each([
    ['X-Forwarded-For', (i: number) => ({ 'x-forwarded-for': addressOf(i) })],
    [
      'a long X-Forwarded-For',
      (i: number) => ({ 'x-forwarded-for': `${addressOf(i)}, 127.0.0.1, ${addressOf(i)}` }),
    ],
    ['an X-Forwarded-For of IPv6', (i: number) => ({ 'x-forwarded-for': `2001:db8:${i}::1` })],
    [
      'all headers that proxies set',
      (i: number) => ({
        forwarded: `for=${addressOf(i)}`,
        ...Object.fromEntries(
          [
            'x-real-ip',
            'x-client-ip',
            'cf-connecting-ip',
            'true-client-ip',
            'fly-client-ip',
            'x-cluster-client-ip',
            'x-forwarded',
            'forwarded-for',
          ].map((name) => [name, addressOf(i)]),
        ),
      }),
    ],
  ])(
    'as it stands admits 100 of 250 requests whose addresses are invented in %s',
    async (_, headersOf) => {
      const { get } = await start('patient.mjs')
      expect(await servedOf(get, headersOf)).toBe(100)
    },
    60_000,
  )

  it('behind one proxy, with one line changed, believes what the proxy has added and nothing before it', async () => {
    const { get } = await start('patient.mjs', { PROXIES: '1' })
    expect(await servedOf(get, (i) => ({ 'x-forwarded-for': `${addressOf(i)}, 198.51.100.1` }))).toBe(100)
    expect((await get('/', { 'x-forwarded-for': '198.51.100.2' })).left).toBe('99')
  }, 60_000)

  it('is ready and serves without Redis, and ends by itself when it is told to', async () => {
    const { child, get } = await start('server.mjs', { REDIS_URL: `redis://127.0.0.1:${await freePort()}` })
    expect(await get('/')).toEqual({ status: 200, left: '99' })
    expect((await get('/ready')).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  }, 30_000)
})
