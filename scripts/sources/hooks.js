// Hooks of Node's module loader. The workspace's packages resolve to their sources, as in Jest, and TypeScript is stripped
// of its types by esbuild, file by file; what it gives is kept in node_modules/.cache/sources for the next process.
//
// SLUICE_SOURCES names a folder whose core is taken instead of ours, for a process of another version. SLUICE_MISSING lists
// packages, separated by commas, that are not found.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { join } from 'node:path'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/sources')
const CORE = join(process.env['SLUICE_SOURCES'] || ROOT, 'packages/core')
const MISSING = new Set(process.env['SLUICE_MISSING']?.split(','))
const OPTIONS = /** @type {const} */ ({
  loader: 'ts',
  format: 'esm',
  target: 'es2022',
  sourcemap: 'inline',
  tsconfigRaw: { compilerOptions: { experimentalDecorators: true, useDefineForClassFields: false } },
})

/** @type {import('node:module').ResolveHook} */
export function resolve(specifier, context, next) {
  if (MISSING.has(specifier)) {
    const error = new Error(`Cannot find package '${specifier}'`)
    throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' })
  }
  const source = sourceOf(specifier)
  if (source) return next(source, context)
  const isOurs = specifier.startsWith('.') && context.parentURL?.endsWith('.ts')
  return isOurs ? next(specifier.replace(/\.js$/, '.ts'), context) : next(specifier, context)
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: await stripped(fileURLToPath(url)), shortCircuit: true }
}

/**
 * The source of an entry of ours, which another version of core may have at another place.
 * @param {string} specifier
 */
function sourceOf(specifier) {
  const [, name = '', entry = ''] = /^@sluice\/([a-z]+)(\/.+)?$/.exec(specifier) ?? []
  if (name === '') return undefined
  const folder = name === 'core' ? CORE : join(ROOT, 'packages', name)
  /** @type {{ exports: Record<string, { require: { types: string } }> }} */
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const types = exports[`.${entry}`]?.require.types ?? ''
  return pathToFileURL(join(folder, types.replace('dist/cjs', 'src').replace(/\.d\.ts$/, '.ts'))).href
}

/** @param {string} file */
async function stripped(file) {
  const source = readFileSync(file, 'utf8')
  const kept = join(CACHE, `${createHash('sha256').update(file).update(source).digest('hex')}.js`)
  try {
    return readFileSync(kept, 'utf8')
  } catch {
    const { transform } = await import('esbuild')
    const { code } = await transform(source, { ...OPTIONS, sourcefile: file })
    mkdirSync(CACHE, { recursive: true })
    // Whole, as other processes look for it at the same time.
    writeFileSync(`${kept}.${process.pid}`, code)
    renameSync(`${kept}.${process.pid}`, kept)
    return code
  }
}
