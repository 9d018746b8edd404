import { build } from 'esbuild'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/*
 * All public packages, as they are published, built from the sources: once as they are, and nested below that with other
 * versions. They lie below node_modules, where what they depend on is found.
 */

export interface Installed {
  readonly folder: string
  remove(): void
}

const PACKAGES = ['core', 'http', 'express', 'koa', 'fastify', 'hono', 'nest', 'outbound']
/** As tsconfig.base.json has it, which a copy of the sources may be without. */
const tsconfigRaw = { compilerOptions: { experimentalDecorators: true, useDefineForClassFields: false } }
const CONTRACT = 'values/contract.js'
const CONTRACT_LINE = /CONTRACT_NUMBER = (\d+)/

/**
 * Installs the packages three times in a temporary folder: as they are, as another version that fits, and as one whose contract is
 * another. Compiles the files of the folder `program` beside them.
 */
export async function installCopies(program: string): Promise<Installed> {
  mkdirSync('node_modules/.cache', { recursive: true })
  const folder = mkdtempSync(resolve('node_modules/.cache/copies-'))
  await install(join(folder, 'node_modules/@sluice'))
  for (const other of ['nested', 'next']) {
    cpSync(join(folder, 'node_modules'), join(folder, other, 'node_modules'), { recursive: true })
    writeFileSync(join(folder, other, 'load.mjs'), 'export const load = (name) => import(name)\n')
    for (const name of PACKAGES) setVersion(join(folder, other, 'node_modules/@sluice', name), '0.9.0')
  }
  for (const format of ['esm', 'cjs']) {
    raiseContract(join(folder, 'next/node_modules/@sluice/core/dist', format, CONTRACT))
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n')
  await build({
    entryPoints: [join(program, '*.ts')],
    outdir: folder,
    tsconfigRaw,
    platform: 'node',
    format: 'esm',
  })
  return { folder, remove: () => rmSync(folder, { recursive: true }) }
}

/** Builds the packages into a folder as a copy of their own, as both kinds of modules. */
async function install(scope: string): Promise<void> {
  for (const name of PACKAGES) {
    const from = join('packages', name)
    const outbase = join(from, 'src')
    for (const format of ['esm', 'cjs'] as const) {
      const outdir = join(scope, name, 'dist', format)
      const entryPoints = [join(outbase, '**/*.ts')]
      await build({ entryPoints, outbase, outdir, format, platform: 'node', target: 'es2022', tsconfigRaw })
    }
    writeFileSync(join(scope, name, 'dist/cjs/package.json'), '{"type":"commonjs"}\n')
    writeFileSync(join(scope, name, 'package.json'), JSON.stringify(manifestOf(from)))
  }
  symlinkSync(resolve('packages/http/node_modules'), join(scope, 'http/node_modules'))
}

/** The manifest with entries as they are compiled here, where the types of CommonJS lie, and not in one file. */
function manifestOf(folder: string): object {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { require: { types: string } }>
  }
  const entries = Object.entries(manifest.exports).map(([name, entry]) => {
    const code = entry.require.types.replace(/\.d\.ts$/, '.js')
    return [name, { import: code.replace('/cjs/', '/esm/'), require: code }]
  })
  return { ...manifest, exports: Object.fromEntries(entries) as object }
}

/** Gives an installed package another version. */
function setVersion(folder: string, version: string): void {
  const file = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object
  writeFileSync(file, JSON.stringify({ ...manifest, version }))
}

/** Raises the number of the contract by which copies of core know whether they fit together. Throws where the file has none. */
function raiseContract(file: string): void {
  const source = readFileSync(file, 'utf8')
  const [, number] = CONTRACT_LINE.exec(source) ?? []
  if (number === undefined) throw new Error(`${file} must hold the number of the contract`)
  writeFileSync(file, source.replace(CONTRACT_LINE, `CONTRACT_NUMBER = ${Number(number) + 1}`))
}
