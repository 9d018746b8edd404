// npm run check -- borders: the entries of core, http and policies that run anywhere need nothing of Node. Each is bundled for a
// browser and for workerd, and may import nothing that is not in the bundle. Exit 1 where one does, with the import.
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
    const wrong = await problemsOf(entry, conditions)
    console.log(`${entry} for ${platform}: ${wrong.length === 0 ? 'nothing of Node' : wrong.join('; ')}`)
    if (wrong.length > 0) process.exitCode = 1
  }
}

/**
 * @param {string} entry
 * @param {string[]} conditions
 * @returns {Promise<string[]>}
 */
async function problemsOf(entry, conditions) {
  try {
    const stdin = { contents: `export * from '${entry}'`, resolveDir: 'packages/http' }
    await build({
      stdin,
      conditions,
      bundle: true,
      write: false,
      platform: 'browser',
      format: 'esm',
      logLevel: 'silent',
    })
    return []
  } catch (error) {
    const { errors } = /** @type {import('esbuild').BuildFailure} */ (error)
    return errors.map(({ text, location }) => `${text} (${location?.file}:${location?.line})`)
  }
}
