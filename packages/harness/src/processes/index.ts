import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Arguments with which Node runs the sources, as Jest does. Whatever runs tests is started in the root of the repository. */
export function onSources(root = resolve('.')): readonly string[] {
  return ['--import', pathToFileURL(resolve(root, 'scripts/sources/register.js')).href]
}
