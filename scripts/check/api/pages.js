// The reference of every public name, as Markdown in docs/api: made by TypeDoc from the docstrings of the sources.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { publicEntries } from '../../workspace.js'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { Application } = createRequire(import.meta.url)('typedoc')

/**
 * @param {readonly import('../../workspace.js').PublicPackage[]} packages
 * @param {string} out Emptied first.
 * @returns {Promise<number>} how many errors and warnings it printed.
 */
export async function writePages(packages, out) {
  const here = import.meta.dirname
  const options = join(here, 'typedoc.json')
  const tsconfig = join(here, 'tsconfig.pages.json')
  const entryPoints = packages.flatMap(sourcesOf)
  const app = await Application.bootstrapWithPlugins({ options, tsconfig, entryPoints, out })
  const project = await app.convert()
  // The pages of `core/src/stores/redis` are those of @sluice/core/redis.
  for (const entry of project?.children ?? []) entry.name = entry.name.replace(/\/src\b/, '')
  if (project) await app.generateOutputs(project)
  return app.logger.errorCount + app.logger.warningCount
}

/**
 * The sources of a package's entry points: dist/cjs/http/index.d.ts was src/http/index.ts.
 * @param {import('../../workspace.js').PublicPackage} published
 */
function sourcesOf({ folder, manifest }) {
  return publicEntries(manifest).map(([, { require }]) =>
    join(folder, require.types.replace('dist/cjs', 'src').replace(/\.d\.ts$/, '.ts')),
  )
}
