import { build, type BuildOptions, type Plugin } from 'esbuild'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compileFunction } from 'node:vm'
import type * as lua from '../../../scripts/build/lua-modules.js'
import { GLOBALS, type Program } from './process.js'

/** A text that stands once in a source, and what takes its place: a planted mistake. */
export interface Change {
  readonly file: string
  readonly text: string
  readonly broken: string
}

/** What the runtime calls the bundle. */
export const FILENAME = 'core.js'

const CORE = resolve('packages/core/src')
const SCRIPTS = 'packages/core/src/stores/redis/script/modules.gen.ts'

/** How the bundle is made of core's sources. */
export const OPTIONS = {
  entryPoints: ['packages/simulation/src/program.ts'],
  alias: {
    '@sluice/core/internal': `${CORE}/internal.ts`,
    '@sluice/core/redis': `${CORE}/stores/redis/index.ts`,
    '@sluice/core': `${CORE}/index.ts`,
    '@sluice/calendar': resolve('packages/calendar/src/index.ts'),
    '@sluice/outbound': resolve('packages/outbound/src/index.ts'),
  },
  bundle: true,
  write: false as const,
  platform: 'node' as const,
  format: 'cjs' as const,
  target: 'es2022',
  // Never imported: connections are handed in.
  external: ['ioredis', 'iovalkey', 'redis'],
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
} satisfies BuildOptions

/** Makes one bundle of core's sources, with mistakes planted where `changes` say. Throws where one cannot be planted. */
export async function bundle(changes: readonly Change[] = []): Promise<Program> {
  const left = new Set(changes)
  const sourceOf = await planter(left)
  const plant: Plugin = {
    name: 'mistakes',
    setup: (esbuild) =>
      esbuild.onLoad({ filter: /\.ts$/ }, ({ path }) => ({ contents: sourceOf(path), loader: 'ts' })),
  }
  const { outputFiles } = await build({ ...OPTIONS, plugins: [plant] })
  for (const { file, text } of left)
    throw new Error(`${file} must be in the bundle and hold ${JSON.stringify(text)} once`)
  return compileFunction(outputFiles[0]!.text, [...GLOBALS], { filename: FILENAME }) as Program
}

/** Makes what a source says with the mistakes that concern it, which are deleted from `left`. Scripts are embedded in one of them. */
async function planter(left: Set<Change>): Promise<(path: string) => string> {
  const broken = (path: string, source: string): string => {
    let text = source
    for (const change of [...left].filter(({ file }) => resolve(file) === resolve(path))) {
      const [before, after, ...others] = text.split(change.text)
      if (after === undefined || others.length > 0) continue
      text = before + change.broken + after
      left.delete(change)
    }
    return text
  }
  // By its address, as an import beside sources would be taken for TypeScript.
  const { luaModules } = (await import(pathToFileURL('scripts/build/lua-modules.js').href)) as typeof lua
  const scripts = luaModules(broken)
  return (path) => (path === resolve(SCRIPTS) ? scripts : broken(path, readFileSync(path, 'utf8')))
}
