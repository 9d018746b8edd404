import { build } from 'esbuild'
import { pathToFileURL } from 'node:url'
import type * as sabotage from '../../../scripts/verify/sabotage/mistakes.js'
import { OPTIONS } from './bundle.js'

/** Mistakes in sources of the bundle that no simulated process can run into, by file or mechanism, and why. */
const NOT_RUN: readonly (readonly [where: RegExp, why: string])[] = [
  [/\/redis\/(?:clients|connection)\/|hash-tags|^groups:/, 'clients of Redis and Clusters are not simulated'],
  [/\/bytes\//, 'no store of it is simulated'],
  [
    /^(?:bounded memory|kept keys|eviction|sweeping|settled logs):|penalty's block outlives/,
    'memory and time of the machine are not simulated',
  ],
  [/^checked (?:input|options):/, 'a plan has no wrong options'],
  [/^(?:copies|format):/, 'a world has one copy of one version'],
]

/** The mistakes of `verify -- sabotage` in what simulated processes and their server run. */
export async function plantable(): Promise<sabotage.Mistake[]> {
  // By its address, as an import beside sources would be taken for TypeScript.
  const file = pathToFileURL('scripts/verify/sabotage/mistakes.js').href
  const { mistakes } = (await import(file)) as typeof sabotage
  const { metafile } = await build({ ...OPTIONS, metafile: true })
  const files = new Set(Object.keys(metafile.inputs))
  return mistakes.filter(
    ({ file, mechanism, mistake }) =>
      (files.has(file) || file.startsWith('lua/')) &&
      !NOT_RUN.some(([where]) => where.test(file) || where.test(`${mechanism}: ${mistake}`)),
  )
}
