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

/** Makes one bundle of core's sources, with mistakes planted where `changes` say. */
export async function bundle(changes: readonly Change[] = []): Promise<Program> {
  const sourceOf = await planter(changes)
  const plant: Plugin = {
    name: 'mistakes',
    setup: (esbuild) =>
      esbuild.onLoad({ filter: /\.ts$/ }, ({ path }) => ({ contents: sourceOf(path), loader: 'ts' })),
  }
  const { outputFiles } = await build({ ...OPTIONS, plugins: [plant] })
  return compileFunction(outputFiles[0]!.text, [...GLOBALS], { filename: 'core.js' }) as Program
}

/** Makes what a source says with the mistakes that concern it. Scripts are embedded in one of them. */
async function planter(changes: readonly Change[]): Promise<(path: string) => string> {
  const broken = (path: string, source: string): string =>
    changes
      .filter(({ file }) => resolve(file) === resolve(path))
      .reduce((text, change) => text.split(change.text).join(change.broken), source)
  // By its address, as an import beside sources would be taken for TypeScript.
  const { luaModules } = (await import(pathToFileURL('scripts/build/lua-modules.js').href)) as typeof lua
  const scripts = luaModules(broken)
  return (path) => (path === resolve(SCRIPTS) ? scripts : broken(path, readFileSync(path, 'utf8')))
}
