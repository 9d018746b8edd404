// The worker of the playground as a text, from which the page makes a blob: a worker of a blob inherits what the page may not do.
import { build } from 'esbuild'

const NAME = 'virtual:playground-worker'

/**
 * @param {string} root
 */
export function playgroundWorker(root) {
  return {
    name: 'playground-worker',
    /** @param {string} id */
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    /** @param {string} id */
    async load(id) {
      if (id !== `\0${NAME}`) return undefined
      return `export default ${JSON.stringify(await bundled(`${root}/site/playground/worker.ts`))}`
    },
  }
}

/**
 * @param {string} entry
 * @returns {Promise<string>}
 */
async function bundled(entry) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    legalComments: 'none',
  })
  return outputFiles.map(({ text }) => text).join('')
}
