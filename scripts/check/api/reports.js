// The public surface of a package, as text: one report of API Extractor for each entry point, one after the other.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { temporaryFolder } from '../../temporary-folder.js'
import { publicEntries } from '../../workspace.js'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { Extractor, ExtractorConfig } = createRequire(import.meta.url)('@microsoft/api-extractor')

/** Nothing is reported but the report: what API Extractor would like of comments is not asked of them. */
const CONFIG = jsonOf('api-extractor.json')
/** Each package's types are read as its users' compiler reads them. */
const COMPILER = jsonOf('tsconfig.types.json')

/**
 * @param {import('../../workspace.js').PublicPackage} published Built.
 * @returns {string}
 */
export function publicSurface({ folder, manifest }) {
  const sections = publicEntries(manifest).map(([path, { require }]) => {
    const title = manifest.name + path.slice(1)
    return `## ${title}\n\n${report(folder, join(folder, require.types))}`
  })
  return [
    `# The public surface of ${manifest.name}\n`,
    'Written by `npm run check -- api --write` from the types of the build. A change here needs a changeset.\n',
    ...sections,
  ].join('\n')
}

/**
 * @param {string} folder
 * @param {string} types
 */
function report(folder, types) {
  const reports = temporaryFolder('api')
  const config = ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: resolve(folder, 'package.json'),
    configObject: {
      ...CONFIG,
      projectFolder: resolve(folder),
      mainEntryPointFilePath: resolve(types),
      compiler: { overrideTsconfig: { ...COMPILER, files: [resolve(types)] } },
      apiReport: { ...CONFIG.apiReport, reportFolder: reports, reportTempFolder: reports },
    },
  })
  Extractor.invoke(config, {
    localBuild: false,
    // Its own messages say that the report differs from none.
    messageCallback: (/** @type {any} */ message) => (message.handled = true),
  })
  const text = readFileSync(join(reports, 'surface.api.md'), 'utf8')
  // Whether a name has a docstring is no part of the surface.
  return text
    .slice(text.indexOf('```ts'))
    .replaceAll(/^ *\/\/ \((?:undocumented|No @packageDocumentation.*)\)\n/gm, '')
    .replaceAll(' (undocumented)', '')
}

/** @param {string} file Of this folder. */
function jsonOf(file) {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8'))
}
