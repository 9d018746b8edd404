import { build } from 'esbuild'
import { pathToFileURL } from 'node:url'
import type * as sabotage from '../../../scripts/verify/sabotage/mistakes.js'
import { OPTIONS } from './bundle.js'

/** Files that a simulated process contains and does not run: clients of Redis, and stores in this process alone. */
const NOT_RUN = /\/redis\/(?:clients|connection)\/|hash-tags|\/bytes\//

/** The mistakes of `verify -- sabotage` in what simulated processes and their server run. */
export async function plantable(): Promise<sabotage.Mistake[]> {
  // By its address, as an import beside sources would be taken for TypeScript.
  const file = pathToFileURL('scripts/verify/sabotage/mistakes.js').href
  const { mistakes } = (await import(file)) as typeof sabotage
  const { metafile } = await build({ ...OPTIONS, metafile: true })
  const files = new Set(Object.keys(metafile.inputs))
  return mistakes.filter(
    (each) => !NOT_RUN.test(each.file) && (files.has(each.file) || each.file.startsWith('lua/')),
  )
}
