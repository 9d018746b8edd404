// What of a package is public, as text: one report of API Extractor for each entry point, one after the other.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { publicEntries } from '../../workspace.js'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { Extractor, ExtractorConfig } = createRequire(import.meta.url)('@microsoft/api-extractor')

/** Each package's types are read as its users' compiler reads them. */
const COMPILER = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: ['node'],
    module: 'nodenext',
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
  },
}

/** Nothing is reported but the report: what API Extractor would like of comments is not asked of them. */
const QUIET = { default: { logLevel: 'none', addToApiReportFile: false } }

/**
 * @param {import('../../workspace.js').PublicPackage} published Built.
 * @returns {string}
 */
export function publicSurface({ folder, manifest }) {
  const entries = publicEntries(manifest).filter(([, { require }]) => require?.types)
  const sections = entries.map(([path, { require }]) => {
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
  const reports = mkdtempSync(join(tmpdir(), 'sluice-api-'))
  try {
    const config = ExtractorConfig.prepare({
      configObjectFullPath: undefined,
      packageJsonFullPath: resolve(folder, 'package.json'),
      configObject: {
        projectFolder: resolve(folder),
        mainEntryPointFilePath: resolve(types),
        newlineKind: 'lf',
        compiler: { overrideTsconfig: { ...COMPILER, files: [resolve(types)] } },
        apiReport: {
          enabled: true,
          reportFolder: reports,
          reportTempFolder: join(reports, 'made'),
          reportFileName: 'surface.api.md',
        },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        messages: {
          compilerMessageReporting: QUIET,
          extractorMessageReporting: QUIET,
          tsdocMessageReporting: QUIET,
        },
      },
    })
    Extractor.invoke(config, {
      localBuild: false,
      // Its own messages say that the report differs from none.
      messageCallback: (/** @type {any} */ message) => (message.handled = true),
    })
    const text = readFileSync(join(reports, 'made', 'surface.api.md'), 'utf8')
    // Whether a name has a docstring is no part of the surface.
    return text
      .slice(text.indexOf('```ts'))
      .replaceAll(/^ *\/\/ \((?:undocumented|No @packageDocumentation.*)\)\n/gm, '')
      .replaceAll(' (undocumented)', '')
  } finally {
    rmSync(reports, { recursive: true })
  }
}
