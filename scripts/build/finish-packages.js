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
import { manifestOf } from '../workspace.js'

/** The beginning of a stripped file. */
const STRIPPED = '/* MIT */\n'

/** About how many characters a line has: Node prints the one that threw an error which is not caught. */
const LINE_LIMIT = 120

/** Before the name of an optional package, which webpack leaves to the runtime and does not warn of. */
const IGNORED = '/*webpackIgnore:true*/'

/** An optional package that CommonJS loads when it is needed. */
const LATER = /(Promise\.resolve\(\)\.then\(\(\)=>\s*\w+\()require\(("[^"]+")\)/g

/** Before a call that bundlers may leave out with its result. */
const PURE = '/*@__PURE__*/'

for (const name of readdirSync('packages')) {
  const folder = `packages/${name}`
  if (!existsSync(`${folder}/dist/cjs`)) continue
  writeFileSync(`${folder}/dist/cjs/package.json`, '{"type":"commonjs"}\n')
  copyFileSync('CHANGELOG.md', `${folder}/CHANGELOG.md`)
  const { main, exports, dependencies, peerDependencies } = manifestOf(folder)
  // What a package only develops with is put into its bundle.
  const external = ['node:*', ...Object.keys({ ...dependencies, ...peerDependencies })]
  if (main?.startsWith('./dist/bundle/')) await bundle(folder, exports, external)
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
 * @param {Record<string, { import: Target, require: Target }>} [exports]
 * @param {string[]} [external] what is left outside of the bundle
 */
async function bundle(folder, exports = {}, external = []) {
  const outdir = `${folder}/dist/bundle`
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
    external,
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
  })
  // esbuild breaks no line between imports, and drops the comments with which webpack leaves packages to the runtime.
  for (const file of readdirSync(outdir).filter((each) => each.endsWith('.mjs'))) {
    const code = readFileSync(join(outdir, file), 'utf8')
    const lines = code.replaceAll(/(?<=[;}])(?=import\{)/g, '\n')
    writeFileSync(join(outdir, file), markPure(lines.replaceAll(/\bimport\((?=")/g, `import(${IGNORED}`)))
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
  const all = `${outdir}/all.cjs`
  writeFileSync(all, readFileSync(all, 'utf8').replaceAll(LATER, leftToRuntime))
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
 * The bundled module with each constant that is computed marked as pure. `sideEffects: false` in the manifest lets bundlers leave
 * out a whole file that is not used, and a chunk has many modules in one file: there they leave out statements, but of calls and
 * spreads only those that are marked. Marks are set behind esbuild, which drops comments with the white space.
 * @param {string} code
 */
export function markPure(code) {
  const { body } = parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
  /** @type {[at: number, text: string][]} */
  const inserted = []
  for (const statement of body) {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    if (declared?.type !== 'VariableDeclaration') continue
    for (const { id, init } of declared.declarations) {
      // Also a class that computes names of its members or static ones, as bundlers take those for effects.
      if (init?.type === 'ClassExpression' && computesWhenDefined(init)) {
        const name = init.id || id.type !== 'Identifier' ? '' : ` ${id.name}`
        inserted.push([init.start, `${PURE}(()=>`], [init.start + 'class'.length, name], [init.end, ')()'])
      }
      const computed = computedParts(init)
      const hasSpread = computed.some(({ type }) => type.startsWith('Spread'))
      // A spread has no mark of its own: a function around it has.
      if (init && hasSpread) inserted.push([init.start, `${PURE}(()=>(`], [init.end, '))()'])
      for (const { type, start } of computed) if (!type.startsWith('Spread')) inserted.push([start, PURE])
    }
  }
  return inserted
    .sort(([one], [other]) => one - other)
    .reduceRight((marked, [at, text]) => marked.slice(0, at) + text + marked.slice(at), code)
}

/** @param {import('acorn').ClassExpression} definition */
function computesWhenDefined({ body }) {
  return body.body.some((member) => {
    return (
      member.type === 'StaticBlock' ||
      member.computed ||
      (member.static && member.type === 'PropertyDefinition')
    )
  })
}

/**
 * The calls and spreads in a part of the tree that its evaluation carries out. The bodies of functions are not evaluated.
 * @param {unknown} node
 * @returns {{ type: string, start: number }[]}
 */
function computedParts(node) {
  if (typeof node !== 'object' || node === null) return []
  const { type = '', start = 0 } = /** @type {{ type?: string, start?: number }} */ (node)
  if (/Function|^Class/.test(type)) return []
  const inside = Object.values(node).flatMap(computedParts)
  return /^(?:Call|New)Expression$|^Spread/.test(type) ? [{ type, start }, ...inside] : inside
}

/**
 * An optional package, as webpack and all others load it. webpack takes the first branch alone, for it knows the type of its own
 * function, and warns of nothing that is missing; other bundlers contain the package where it is installed.
 * @param {string} _later @param {string} before @param {string} name
 */
function leftToRuntime(_later, before, name) {
  const loaded = `typeof __webpack_require__=="function"?__non_webpack_require__(${name}):require(${name})`
  return before + loaded
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
