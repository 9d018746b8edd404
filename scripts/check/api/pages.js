// The reference of every public name, as Markdown in docs/api: made by TypeDoc from the docstrings of the sources.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { publicEntries } from '../../workspace.js'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { Application } = createRequire(import.meta.url)('typedoc')

/**
 * @param {readonly import('../../workspace.js').PublicPackage[]} packages
 * @param {string} out Emptied first.
 * @returns {Promise<number>} how many errors and warnings it printed.
 */
export async function writePages(packages, out) {
  const entryPoints = packages.flatMap(sourcesOf).map((path) => resolve(path))
  const folder = mkdtempSync(join(import.meta.dirname, '.tsconfig-'))
  try {
    const tsconfig = join(folder, 'tsconfig.json')
    writeFileSync(tsconfig, JSON.stringify({ ...TSCONFIG, files: entryPoints }))
    const app = await Application.bootstrapWithPlugins({
      entryPoints,
      tsconfig,
      plugin: ['typedoc-plugin-markdown'],
      out,
      name: 'Sluice',
      readme: 'none',
      excludeInternal: true,
      excludePrivate: true,
      disableSources: true,
      hideBreadcrumbs: true,
      hidePageHeader: true,
      logLevel: 'Warn',
      // Types that are not exported are named in signatures, where their name says what they are.
      validation: { notExported: false },
    })
    const project = await app.convert()
    // The pages of `core/src/stores/redis` are those of @sluice/core/redis.
    for (const entry of project?.children ?? []) entry.name = entry.name.replace(/\/src\b/, '')
    if (project) await app.generateOutputs(project)
    return app.logger.errorCount + app.logger.warningCount
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What the compiler of the build is told, for one that emits nothing. */
const TSCONFIG = {
  extends: '../../../../tsconfig.base.json',
  compilerOptions: {
    noEmit: true,
    composite: false,
    incremental: false,
    rootDir: '../../../..',
    typeRoots: ['../../../../node_modules/@types'],
    types: ['node', 'jest'], // the conformance kit declares tests
  },
}

/**
 * The sources of a package's entry points: dist/cjs/http/index.d.ts was src/http/index.ts.
 * @param {import('../../workspace.js').PublicPackage} published
 */
function sourcesOf({ folder, manifest }) {
  return publicEntries(manifest)
    .filter(([, { require }]) => require?.types)
    .map(([, { require }]) =>
      join(folder, require.types.replace('dist/cjs', 'src').replace(/\.d\.ts$/, '.ts')),
    )
}
