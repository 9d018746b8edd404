// Runs the recipes for frameworks (docs/recipes/next, sveltekit) on the frameworks themselves, built as for production, and the
// fake clock in Vitest, bundles both stores of a server with webpack, bundles one algorithm with webpack, Rollup and esbuild,
// and prints a line for each: npm run verify -- frameworks. The frameworks come from npm, into this folder alone. Exit 1 when a
// recipe does not compile, or does not admit its limit, or a bundle is too large.
import { build, transform } from 'esbuild'
import { freePort } from '@sluice/harness/redis'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '../../..')
const RECIPES = join(ROOT, 'docs/recipes')
/** Beside node_modules, where the frameworks look for theirs. */
const WORK = join(HERE, 'work')
const LIMIT = 10
const SERVER_STORES = {
  'index.mjs': "export * from '@sluice/core/redis'; export * from '@sluice/postgres'",
  'index.cjs': "module.exports = [require('@sluice/core/redis'), require('@sluice/postgres')]",
}
const ALGORITHM = "import { gcra } from '@sluice/core'; console.log(gcra)"
/** Minified, before gzip. */
const MOST_BYTES = 11_000
const ENV = { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' }

rmSync(WORK, { recursive: true, force: true })
try {
  compileRecipes()
  checkVitest()
  await checkWebpack()
  await checkAlgorithm()
  await checkNext()
  await checkSvelteKit()
} finally {
  rmSync(WORK, { recursive: true, force: true })
}

function compileRecipes() {
  run('the recipes compile', [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', HERE])
}

/** The fake clock of @sluice/testing in Vitest. */
function checkVitest() {
  const vitest = join(HERE, 'node_modules/vitest/vitest.mjs')
  const folder = join(ROOT, 'packages/testing/test/runners')
  cpSync(folder, join(WORK, 'vitest'), { recursive: true })
  run('the fake clock and the assertions work in Vitest', [
    vitest,
    'run',
    '--root',
    join(WORK, 'vitest'),
    'vitest.test.mjs',
  ])
}

/** Stores of a server bundle without a warning where no client package is installed, by both ways to load them. */
async function checkWebpack() {
  for (const [file, contents] of Object.entries(SERVER_STORES)) {
    const warned = await inProject(file, contents, async (folder) => {
      const { errors, warnings } = await webpacked(folder, `./${file}`, 'node')
      return [...errors, ...warnings].map(({ message }) => message)
    })
    const [mark, said] = warned.length === 0 ? ['✓', 'no warning'] : ['✗', warned.join('; ')]
    console.log(`${mark} webpack, ${file}: ${said}`)
    if (warned.length > 0) process.exitCode = 1
  }
}

/** Whoever imports an algorithm alone bundles neither the limiter nor a store. */
async function checkAlgorithm() {
  await inProject('index.mjs', ALGORITHM, async (folder) => {
    const entry = join(folder, 'index.mjs')
    await webpacked(folder, entry, 'web')
    const { rollup } = createRequire(import.meta.url)('rollup')
    const resolveId = (/** @type {string} */ id) =>
      id === '@sluice/core' ? join(folder, 'node_modules/@sluice/core/dist/bundle/index.mjs') : null
    // As Rollup's plugin for packages tells it from "sideEffects" of package.json.
    const treeshake = { moduleSideEffects: (/** @type {string} */ id) => id === entry }
    const rolled = await rollup({ input: entry, treeshake, plugins: [{ name: 'core', resolveId }] })
    const { output } = await rolled.generate({ format: 'es' })
    const { code } = await transform(output[0].code, { minify: true, format: 'esm' })
    const { outputFiles } = await build({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      format: 'esm',
      write: false,
    })
    const bundles = {
      webpack: readFileSync(join(folder, 'main.js'), 'utf8'),
      Rollup: code,
      esbuild: outputFiles[0]?.text ?? '',
    }
    for (const [bundler, { length }] of Object.entries(bundles)) {
      const fits = length > 0 && length <= MOST_BYTES
      console.log(
        `${fits ? '✓' : '✗'} ${bundler}, one algorithm: ${length} bytes minified, at most ${MOST_BYTES}`,
      )
      if (!fits) process.exitCode = 1
    }
  })
}

/**
 * Has a project that has installed core and postgres and has one file.
 * @template T
 * @param {string} file
 * @param {string} contents
 * @param {(folder: string) => Promise<T>} use
 */
async function inProject(file, contents, use) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  try {
    for (const name of ['core', 'postgres']) {
      const own = join(folder, 'node_modules/@sluice', name)
      cpSync(join(ROOT, 'packages', name, 'package.json'), join(own, 'package.json'))
      cpSync(join(ROOT, 'packages', name, 'dist/bundle'), join(own, 'dist/bundle'), { recursive: true })
    }
    writeFileSync(join(folder, file), contents)
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Writes main.js into the folder.
 * @param {string} folder
 * @param {string} entry
 * @param {string} target
 * @returns {Promise<Record<'errors' | 'warnings', { message: string }[]>>}
 */
function webpacked(folder, entry, target) {
  // Not an import: the compiler reads this file where webpack is not installed.
  const webpack = createRequire(import.meta.url)('webpack')
  const options = { context: folder, entry, target, mode: 'production', output: { path: folder } }
  return new Promise((resolve, reject) => {
    webpack(options).run((/** @type {unknown} */ error, /** @type {Stats | undefined} */ stats) => {
      const { errors = [], warnings = [] } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {}
      if (error) reject(error)
      else resolve({ errors, warnings })
    })
  })
}

async function checkNext() {
  const app = application('next')
  await recipe('next/route.ts', join(app, 'app/hello/route.js'))
  await recipe('next/proxy.ts', join(app, 'proxy.js'))
  const next = join(HERE, 'node_modules/next/dist/bin/next')
  run('Next.js builds', [next, 'build'], app)
  await serving([next, 'start', '-H', '127.0.0.1', '-p'], app, async (origin) => {
    /** @param {number} n a caller, as a proxy in front names it */
    const from = (n) => ({ 'X-Forwarded-For': `203.0.113.9, 192.0.2.${n}` })
    report('Next.js, route', await wrongOf(`${origin}/hello`, from))
    report('Next.js, proxy', await wrongOf(`${origin}/api/free`, from, false))
  })
}

async function checkSvelteKit() {
  const app = application('sveltekit')
  await recipe('sveltekit/hooks.server.ts', join(app, 'src/hooks.server.js'))
  run('SvelteKit builds', [join(HERE, 'node_modules/vite/bin/vite.js'), 'build'], app)
  const env = { ADDRESS_HEADER: 'X-Forwarded-For', XFF_DEPTH: '1', HOST: '127.0.0.1' }
  await serving(
    ['build/index.js'],
    app,
    async (origin) => {
      /** @param {number} n */
      const from = (n) => ({ 'X-Forwarded-For': `203.0.113.9, 192.0.2.${n}` })
      report('SvelteKit, hook', await wrongOf(`${origin}/`, from))
    },
    env,
  )
}

/**
 * What an application needs beside a recipe.
 * @param {string} name
 */
function application(name) {
  const folder = join(WORK, name)
  cpSync(join(HERE, name), folder, { recursive: true })
  return folder
}

/**
 * @param {string} from
 * @param {string} to
 */
async function recipe(from, to) {
  const { code } = await transform(readFileSync(join(RECIPES, from), 'utf8'), { loader: 'ts' })
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, code)
}

/**
 * What is wrong with a limit of ten requests a minute for each caller, at this address.
 * @param {string} url
 * @param {(n: number) => Record<string, string>} from
 * @param {boolean} [tells] whether responses say how many are left
 */
async function wrongOf(url, from, tells = true) {
  const wrong = []
  for (let i = 0; i < LIMIT; i++) {
    const { status, headers } = await fetch(url, { headers: from(1) })
    const remaining = headers.get('x-ratelimit-remaining')
    if (status !== 200 || remaining !== (tells ? `${LIMIT - 1 - i}` : null))
      wrong.push(`request ${i + 1}: ${status}, ${remaining} left`)
  }
  const denied = await fetch(url, { headers: from(1) })
  const { title } = /** @type {{ title?: string }} */ (await denied.json())
  const [type, wait] = ['content-type', 'retry-after'].map((name) => denied.headers.get(name))
  if (
    denied.status !== 429 ||
    title !== 'Quota Exceeded' ||
    type !== 'application/problem+json' ||
    !(Number(wait) > 0)
  )
    wrong.push(`request ${LIMIT + 1}: ${denied.status} ${type} ${title}, Retry-After: ${wait}`)
  const other = await fetch(url, { headers: from(2) })
  if (other.status !== 200) wrong.push(`another caller: ${other.status}`)
  return wrong
}

/**
 * @param {string} what
 * @param {readonly string[]} wrong
 */
function report(what, wrong) {
  console.log(
    wrong.length === 0
      ? `✓ ${what}: ${LIMIT} of ${LIMIT + 1} requests served, then 429`
      : `✗ ${what}: ${wrong.join('; ')}`,
  )
  if (wrong.length > 0) process.exitCode = 1
}

/**
 * @param {string} what
 * @param {readonly string[]} args
 */
function run(what, args, cwd = HERE) {
  const env = { ...ENV, NODE_ENV: what.includes('Vitest') ? 'test' : 'production' }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8', env })
  if (status !== 0) throw new Error(`${what} no more: ${stdout}${stderr}`)
  console.log(`✓ ${what}`)
}

/**
 * Serves an application while requests are sent to it.
 * @param {readonly string[]} args
 * @param {string} cwd
 * @param {(origin: string) => Promise<void>} use
 */
async function serving(args, cwd, use, env = {}) {
  const port = await freePort()
  const given = args.at(-1) === '-p' ? [...args, `${port}`] : args
  const child = spawn(process.execPath, given, {
    cwd,
    env: { ...ENV, ...env, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await new Promise((resolve, reject) => {
      child.stdout.on('data', (text) => /Ready|Listening/.test(String(text)) && resolve(undefined))
      child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}`)))
    })
    await use(`http://127.0.0.1:${port}`)
  } finally {
    child.kill()
  }
}

/** @typedef {{ toJson(options: object): Record<'errors' | 'warnings', { message: string }[]> }} Stats of webpack. */
