// Runs the built packages on every runtime and prints a line for each: npm run verify -- runtimes; names choose, as in
// `runtimes workerd "Node 24"`. Exit 1 when a part fails. The runtimes come from npm, into this folder alone: in the root they would take the place of Node in every script.
import { build } from 'esbuild'
import { startPostgres } from '@sluice/harness/postgres'
import { freePort, startRedis, until } from '@sluice/harness/redis'
import { execFile, spawn } from 'node:child_process'
import { get } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {Record<string, string[]>} Result what went wrong with each part. */

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '../../..')
const SCRIPT = join(HERE, 'on-server.js')
const modules = join(HERE, 'node_modules')
// Not an import: the compiler reads this file where the runtimes are not installed.
const { Miniflare } = createRequire(import.meta.url)('miniflare')
/** What a reader of docs/recipes/edge.ts adds: the module of a Worker. */
const EDGE_WORKER = `
import { edgeApp, LimitState } from './docs/recipes/edge.ts'
export { LimitState }
let app
export default { fetch: (request, env) => (app ??= edgeApp(env.LIMITS)).fetch(request) }`

const BUN = '@oven/bun-linux-x64/bin/bun'
const DENO = '@deno/linux-x64-glibc/deno'
const DENO_ARGS = ['--allow-all', '--node-modules-dir=manual', '--no-lock']
/** @param {number} port */
const bunServing = (port) =>
  `import recipe from './docs/recipes/bun.ts'; Bun.serve({ ...recipe, port: ${port}, hostname: '127.0.0.1' })`

/** @type {[string, string, string[]][]} */
const SERVERS = [
  ...[20, 22, 24, 26].map(
    (version) =>
      /** @type {[string, string, string[]]} */ ([`Node ${version}`, `node-${version}/bin/node`, []]),
  ),
  ['Bun', BUN, ['run']],
  ['Deno', DENO, ['run', ...DENO_ARGS]],
]

const names = process.argv.slice(2)
/** @param {string} name */
const isChosen = (name) => names.length === 0 || names.includes(name)
const redis = await startRedis()
let passed = true
try {
  for (const [name, program, args] of SERVERS) {
    if (!isChosen(name)) continue
    const limiter = name.toLowerCase().replace(' ', '-')
    report(
      name,
      await onServer(join(modules, program), [
        ...args,
        SCRIPT,
        `redis://${redis.host}:${redis.port}`,
        limiter,
      ]),
    )
  }
  if (isChosen('workerd'))
    report('workerd', {
      ...(await onWorkerd()),
      edge: await edgeOnWorkerd(),
      recipe: await recipeOnWorkerd(),
    })
  if (isChosen('Bun')) report('Bun', await onPostgres())
  if (isChosen('Bun')) report('Bun', { recipe: await served(BUN, (port) => ['-e', bunServing(port)]) })
  if (isChosen('Deno'))
    report('Deno', {
      recipe: await served(DENO, (port) => [
        'serve',
        '--host=127.0.0.1',
        `--port=${port}`,
        ...DENO_ARGS,
        'docs/recipes/deno.ts',
      ]),
    })
} finally {
  await redis.stop()
}
process.exitCode = passed ? 0 : 1

/**
 * @param {string} name
 * @param {Result} result
 */
function report(name, result) {
  const marks = Object.entries(result).map(([part, wrong]) =>
    wrong.length === 0 ? `✓ ${part}` : `✗ ${part}: ${wrong.join(', ')}`,
  )
  if (Object.values(result).some((wrong) => wrong.length > 0)) passed = false
  console.log(`${name.padEnd(8)} ${marks.join('  ')}`)
}

/**
 * @param {string} program
 * @param {string[]} args
 * @returns {Promise<Result>}
 */
function onServer(program, args) {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: 60_000 }, (error, stdout, stderr) =>
      resolve(error ? { start: [`${error.message}\n${stderr}`] } : JSON.parse(stdout)),
    )
  })
}

/** A store over Bun's own client of Postgres. @returns {Promise<Result>} */
async function onPostgres() {
  const postgres = await startPostgres()
  try {
    return await onServer(join(modules, BUN), ['run', join(HERE, 'bun-sql.js'), postgres.url])
  } finally {
    await postgres.stop()
  }
}

/** @returns {Promise<Result>} */
async function onWorkerd() {
  return withWorker({ entryPoints: [join(HERE, 'worker.js')] }, async (get) => {
    const statuses = []
    for (let i = 0; i < 5; i++) statuses.push((await get('/')).status)
    const served = String(statuses) === '200,200,200,429,429' ? [] : [`statuses ${String(statuses)}`]
    return { .../** @type {Result} */ (await (await get('/check')).json()), served }
  })
}

/** The recipe for the edge, with real Durable Objects: 100 a minute, for requests that meet too. */
async function edgeOnWorkerd() {
  return withWorker({ stdin: { contents: EDGE_WORKER, resolveDir: ROOT } }, async (get) => {
    /** @param {string} address */
    const statusFor = async (address) => (await get('/', { 'cf-connecting-ip': address })).status
    const wrong = []
    const statuses = []
    for (let i = 0; i < 12; i++)
      statuses.push(...(await Promise.all(Array.from({ length: 10 }, () => statusFor('203.0.113.7')))))
    const served = statuses.filter((status) => status === 200).length
    if (served !== 100) wrong.push(`${served} of 120 requests served`)
    if ((await statusFor('203.0.113.8')) !== 200) wrong.push('another address was refused')
    return wrong
  })
}

/** The recipe for a Worker: ten requests a minute from an address. */
async function recipeOnWorkerd() {
  return withWorker({ entryPoints: [join(ROOT, 'docs/recipes/worker.ts')] }, (get) =>
    tenOf(async (address) => (await get('/', { 'cf-connecting-ip': address })).status),
  )
}

/**
 * What is wrong with a recipe that serves ten requests a minute for each address.
 * @param {(address: string) => Promise<number>} statusFor
 */
async function tenOf(statusFor) {
  const statuses = []
  for (let i = 0; i < 11; i++) statuses.push(await statusFor('127.0.0.1'))
  statuses.push(await statusFor('127.0.0.2'))
  const expected = [...Array(10).fill(200), 429, 200].join()
  return statuses.join() === expected ? [] : [`statuses ${statuses.join()}`]
}

/**
 * Serves a recipe by Bun or Deno, to callers from two addresses.
 * @param {string} program
 * @param {(port: number) => string[]} argsOf
 */
async function served(program, argsOf) {
  const port = await freePort()
  const child = spawn(join(modules, program), argsOf(port), { cwd: ROOT, stdio: 'ignore' })
  try {
    await until(`${program} serves`, async () => (await statusFrom(port, '127.0.0.3')) === 200)
    return await tenOf((address) => statusFrom(port, address))
  } finally {
    child.kill()
  }
}

/**
 * @param {number} port
 * @param {string} localAddress
 * @returns {Promise<number>}
 */
function statusFrom(port, localAddress) {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, localAddress, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    }).on('error', reject)
  })
}

/**
 * Serves a Worker while requests are sent to it.
 * @template T
 * @param {import('esbuild').BuildOptions} source
 * @param {(get: (path: string, headers?: Record<string, string>) => Promise<Response>) => Promise<T>} use
 * @returns {Promise<T>}
 */
async function withWorker(source, use) {
  const conditions = ['workerd', 'worker', 'browser']
  const { outputFiles } = await build({
    ...source,
    conditions,
    bundle: true,
    write: false,
    format: 'esm',
    logLevel: 'error',
  })
  const miniflare = new Miniflare({
    modules: true,
    script: outputFiles[0]?.text ?? '',
    compatibilityDate: '2025-12-01',
    ...(source.stdin && { durableObjects: { LIMITS: 'LimitState' } }),
  })
  try {
    return await use((path, headers = {}) => miniflare.dispatchFetch(`http://sluice${path}`, { headers }))
  } finally {
    await miniflare.dispose()
  }
}
