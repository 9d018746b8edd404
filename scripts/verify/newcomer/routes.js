// From `npm init -y` to a limited route that answers 429, with nothing but blocks of the docs: the first that serves of each
// adapter's README, and the recipe for plain http, as an ES module, in CommonJS and in TypeScript; and the first block of
// @sluice/postgres, on a Postgres of its own. npm run verify -- newcomer routes. Prints a line for each.
import { startPostgres } from '@sluice/harness/postgres'
import { transformSync } from 'esbuild'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { npmProgram } from '../../npm.js'
import { missingProgram } from '../../programs.js'
import { report, runIn } from '../../release/environment.js'
import { importsOf, installedBy } from '../../release/example.js'
import { packAll } from '../../release/pack.js'
import { versionsOf } from '../../release/try.js'
import { temporaryFolder } from '../../temporary-folder.js'

/** The page with the block of each package. @type {Readonly<Record<string, string>>} */
const PAGES = {
  express: 'README.md',
  koa: 'packages/koa/README.md',
  fastify: 'packages/fastify/README.md',
  hono: 'packages/hono/README.md',
  nest: 'packages/nest/README.md',
  http: 'packages/http/README.md',
  'plain http, the recipe': 'docs/recipes/plain-http.ts',
}
/** For what a program of each kind is written to a project, and the file that is run. */
const KINDS = /** @type {const} */ ({
  'ES module': ['index.mjs', 'index.mjs'],
  CommonJS: ['index.cjs', 'index.cjs'],
  TypeScript: ['index.mts', 'index.mjs'],
})
const TSC = resolve('node_modules/typescript/bin/tsc')
const COMPILER_OPTIONS = {
  module: 'nodenext',
  target: 'es2022',
  strict: true,
  types: ['node'],
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
}

/** @returns {Promise<boolean>} whether every route answered 429. */
export async function firstRoutes() {
  const folder = temporaryFolder('routes')
  const tarballs = packAll(folder).map(({ file }) => file)
  let passed = true
  for (const [name, page] of Object.entries(PAGES)) {
    const { code, needs } = blockOf(page, /\.listen\(|\bserve\(|AppModule|createServer/)
    const project = newProject(join(folder, name.replace(/\W+/g, '-')), tarballs, needs)
    for (const kind of /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS)))
      passed = report(`${name}, ${kind}`, deniedAt429(runAs(kind, code, project))) && passed
  }
  return (await postgres(join(folder, 'postgres'), tarballs)) && passed
}

/** A route that is not denied has failed too. @param {ReturnType<typeof runIn>} ran */
function deniedAt429({ failed, output }) {
  return { failed: failed || !output.trim().endsWith(', then 429'), output }
}

/** @param {string} folder @param {readonly string[]} tarballs */
async function postgres(folder, tarballs) {
  const missing = missingProgram('postgres')
  if (missing) return report('postgres', { failed: false, output: `skipped: ${missing}` })
  const { code, needs } = blockOf('packages/postgres/README.md', /postgresStore/)
  const server = await startPostgres()
  try {
    const own = code.replace('postgres://localhost/app', server.url)
    const project = newProject(folder, tarballs, needs)
    return report('postgres, ES module', runAs('ES module', own, project))
  } finally {
    await server.stop()
  }
}

/**
 * The first block of TypeScript on a page that does this, and the packages that the page's first `npm install` names. A recipe
 * is a block by itself.
 * @param {string} page @param {RegExp} does
 */
function blockOf(page, does) {
  const text = readFileSync(page, 'utf8')
  const blocks = page.endsWith('.ts')
    ? [text]
    : [...text.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code]) => code ?? '')
  const code = blocks.find((block) => does.test(block))
  if (!code) throw new Error(`${page} has no block that does ${does}`)
  return { code, needs: [...installedBy(text), ...importsOf(code)] }
}

/**
 * A project as `npm init -y` and `npm install` make it. The packages of this repository come as they are packed.
 * @param {string} folder @param {readonly string[]} tarballs @param {readonly string[]} names
 */
function newProject(folder, tarballs, names) {
  mkdirSync(folder)
  const types = names
    .filter((name) => ['express', 'koa', 'pg'].includes(name))
    .map((name) => `@types/${name}`)
  const packages = Object.entries(versionsOf([...new Set([...names, ...types, '@types/node'])]))
  const wanted = packages.map(([name, version]) => `${name}@${version}`)
  for (const args of [
    ['init', '-y'],
    ['install', '--no-audit', '--no-fund', ...tarballs, ...wanted],
  ]) {
    const { failed, output } = runIn(folder, [npmProgram(), ...args])
    if (failed) throw new Error(output)
  }
  cpSync('scripts/release/run-example.js', join(folder, 'run.mjs'))
  return folder
}

/**
 * Runs a block of the docs as a program of one kind. In CommonJS a block with `await` at its top is wrapped into an async function, as
 * the docs tell readers to do.
 * @param {keyof typeof KINDS} kind @param {string} code @param {string} project
 */
function runAs(kind, code, project) {
  const [written, file] = KINDS[kind]
  if (kind === 'TypeScript') {
    writeFileSync(join(project, written), code)
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: [written] }),
    )
    const compiled = runIn(project, [TSC, '-p', '.'])
    if (compiled.failed) return compiled
  } else {
    const format = kind === 'CommonJS' ? 'cjs' : 'esm'
    const whole = format === 'cjs' && /^await /m.test(code) ? inFunction(code) : code
    const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } }
    writeFileSync(
      join(project, written),
      transformSync(whole, { loader: 'ts', format, platform: 'node', tsconfigRaw }).code,
    )
  }
  return runIn(project, ['run.mjs', file])
}

/** @param {string} code */
function inFunction(code) {
  const imports = /^(?:import .*\n)+/.exec(code)?.[0] ?? ''
  return `${imports}export const started = start()\nasync function start() {\n${code.slice(imports.length)}}\n`
}
