import { build } from 'esbuild'

/**
 * Modules `virtual:NAME` whose default export is a text, which is made when it is imported.
 * @param {Record<string, () => string | Promise<string>>} texts
 */
export function virtualModules(texts) {
  return {
    name: 'virtual-modules',
    /** @param {string} id */
    resolveId: (id) => (id.startsWith('virtual:') ? `\0${id}` : undefined),
    /** @param {string} id */
    async load(id) {
      const text = texts[/^\0virtual:(.+)$/.exec(id)?.[1] ?? '']
      return text && `export default ${JSON.stringify(await text())}`
    },
  }
}

/**
 * The worker of the playground as a text, from which the page makes a blob: a worker of a blob inherits what its page may not do.
 * @param {string} root
 */
export async function workerOf(root) {
  const { outputFiles } = await build({
    entryPoints: [`${root}/site/playground/worker.ts`],
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
