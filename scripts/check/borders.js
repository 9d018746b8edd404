// npm run check -- borders: the entries of core, http and policies that run anywhere need nothing of Node. Each is bundled for a
// browser and for workerd, and may import nothing that is not in the bundle. esbuild prints each
// import that does; exit 1 then.
import { build } from 'esbuild'

const ENTRIES = [
  '@sluice/core',
  '@sluice/core/internal',
  '@sluice/core/store',
  '@sluice/http',
  '@sluice/policies',
]
const PLATFORMS = { browser: ['browser'], workerd: ['workerd', 'worker', 'browser'] }

for (const entry of ENTRIES) {
  for (const [platform, conditions] of Object.entries(PLATFORMS)) {
    const { errors } = await build({
      stdin: { contents: `export * from '${entry}'`, resolveDir: 'packages/http' },
      conditions,
      bundle: true,
      write: false,
      platform: 'browser',
      format: 'esm',
      logLevel: 'error',
    }).catch((/** @type {import('esbuild').BuildFailure} */ failure) => failure)
    console.log(`${errors.length === 0 ? '✓' : '✗'} ${entry} for ${platform}`)
    if (errors.length > 0) process.exitCode = 1
  }
}
