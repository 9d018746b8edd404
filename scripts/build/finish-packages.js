// Makes what is published of what the compiler wrote: dist/cjs is CommonJS in packages that are "type": "module", code
// comes without its comments (they are in the types, and were a fifth of the size), and each package has the changelog.
//
// Core is some 100 modules, and loading as many files took more CPU than a whole rate limiter of others. The entries of a
// package whose manifest names dist/bundle are bundled: as ES modules in shared chunks, and as CommonJS in one file, in which
// modules are still run one by one when they are needed. Whatever an entry point shares with another is there once. So are
// its types: the compiler's for CommonJS, which the ES modules' in the folder types name again, and of these only what an
// entry reaches. What users bundle of a chunk is what they import, as of single modules: `markPure` sees to that.
import { parse } from 'acorn'
import { build, transformSync } from 'esbuild'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'

/** What a stripped file begins with. */
const STRIPPED = '/* MIT */\n'

/** About how many characters a line has: Node prints the one that threw an error which is not caught. */
const LINE_LIMIT = 120

for (const name of readdirSync('packages')) {
  const folder = `packages/${name}`
  if (!existsSync(`${folder}/dist/cjs`)) continue
  writeFileSync(`${folder}/dist/cjs/package.json`, '{"type":"commonjs"}\n')
  copyFileSync('CHANGELOG.md', `${folder}/CHANGELOG.md`)
  const { main } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  if (main?.startsWith('./dist/bundle/')) await bundle(folder)
  else stripAll(`${folder}/dist`)
}

/** @param {string} dist */
function stripAll(dist) {
  for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue
    const code = readFileSync(join(dist, file), 'utf8')
    // The compiler writes only what has changed.
    if (code.startsWith(STRIPPED)) continue
    const minifyWhitespace = file.startsWith('cjs')
    const stripped = transformSync(code, { minifyWhitespace, lineLimit: LINE_LIMIT }).code
    writeFileSync(join(dist, file), STRIPPED + stripped)
  }
}

/**
 * Writes dist/bundle/NAME.mjs and NAME.cjs for each entry of `exports`, as the manifest names them.
 * @param {string} folder
 */
async function bundle(folder) {
  const outdir = `${folder}/dist/bundle`
  /** @type {{ exports: Record<string, { import: Target, require: Target }> }} */
  const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  const entries = Object.values(exports).map((entry) => ({
    name: basename(entry.import.default, '.mjs'),
    types: join(folder, entry.require.types),
    source: entry.require.types.replace('/cjs/', '/esm/').replace(/\.d\.ts$/, '.js'),
  }))
  rmSync(outdir, { recursive: true, force: true })
  /** @type {import('esbuild').BuildOptions} */
  const shared = {
    bundle: true,
    outdir,
    packages: 'external',
    platform: 'neutral',
    target: 'es2022',
    // Names stay, so that stack traces can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: LINE_LIMIT,
  }
  await build({
    ...shared,
    entryPoints: Object.fromEntries(entries.map(({ name, source }) => [name, join(folder, source)])),
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    splitting: true,
    chunkNames: 'shared-[hash]',
    plugins: [
      {
        name: 'mark-pure',
        setup: (builds) =>
          builds.onLoad({ filter: /\/dist\/esm\/.*\.js$/ }, ({ path }) => ({
            contents: markPure(readFileSync(path, 'utf8')),
          })),
      },
    ],
  })
  // esbuild breaks no line between imports.
  for (const file of readdirSync(outdir).filter((each) => each.endsWith('.mjs'))) {
    const code = readFileSync(join(outdir, file), 'utf8')
    writeFileSync(join(outdir, file), code.replaceAll(/(?<=[;}])(?=import\{)/g, '\n'))
  }
  // Of ES modules too: between those of the compiler's CommonJS each name goes through `exports`, which is a seventh more.
  const contents = entries
    .map(({ name, source }) => `exports.${name} = () => require('${source}')`)
    .join('\n')
  await build({
    ...shared,
    stdin: { contents, resolveDir: folder },
    entryNames: 'all',
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    // Core's one file of 300 kB in long lines is not read by people: short local names make it a quarter smaller.
    minifyIdentifiers: true,
    // Becomes `require`: test runners that load CommonJS into a context of their own, such as Jest, have no import().
    supported: { 'dynamic-import': false },
  })
  for (const { name } of entries) {
    writeFileSync(`${outdir}/${name}.cjs`, `module.exports = require('./all.cjs').${name}()\n`)
  }
  const types = `${folder}/dist/cjs`
  const reached = new Set()
  for (const entry of entries) reachTypes(entry.types, reached)
  const published = [...reached].map((file) => `!/${relative(types, file).replaceAll('\\', '/')}`)
  // Of "files" in the manifest, npm packs what the .npmignore of a folder inside does not leave out.
  writeFileSync(`${types}/.npmignore`, `${['*.d.ts', ...published].join('\n')}\n`)
}

/**
 * The module with each constant that is computed as a call marked as pure. `sideEffects: false` in the manifest lets bundlers
 * leave out a whole file that nobody uses, and a chunk has many modules in one file: there they leave out statements, but of
 * calls and spreads only those that are marked.
 * @param {string} code
 */
export function markPure(code) {
  const { body } = parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
  let marked = code
  for (const statement of body.toReversed()) {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    if (declared?.type !== 'VariableDeclaration') continue
    for (const { init } of declared.declarations.toReversed()) {
      if (!init || !isComputed(init)) continue
      const { start, end } = init
      marked = `${marked.slice(0, start)}/* @__PURE__ */ (() => (${code.slice(start, end)}))()${marked.slice(end)}`
    }
  }
  return marked
}

/**
 * Whether evaluating a part of the tree calls a function or spreads an object. The bodies of functions are not evaluated.
 * @param {unknown} node
 * @returns {boolean}
 */
function isComputed(node) {
  if (typeof node !== 'object' || node === null) return false
  const { type = '' } = /** @type {{ type?: string }} */ (node)
  if (/Function|^Class/.test(type)) return false
  return /^(?:Call|New)Expression$|^Spread/.test(type) || Object.values(node).some(isComputed)
}

/**
 * Adds a file of types, and all that it imports, to `reached`.
 * @param {string} file
 * @param {Set<string>} reached
 */
function reachTypes(file, reached) {
  if (reached.has(file)) return
  reached.add(file)
  for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(
    /(?:\bfrom |\bimport\()['"](\.[^'"]+)['"]/g,
  ))
    reachTypes(join(dirname(file), path.replace(/\.js$/, '.d.ts')), reached)
}

/** @typedef {{ types: string, default: string }} Target */
