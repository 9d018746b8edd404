// A hook of Node's module loader, before those of scripts/sources: the sources of our packages with what `entries` counts.
import { instrumented } from './instrument.js'

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  const loaded = await next(url, context)
  if (!/\/packages\/[a-z]+\/src\/.+\.ts$/.test(url)) return loaded
  if (typeof loaded.source !== 'string') throw new Error(`${url} was not loaded as text`)
  return { ...loaded, source: instrumented(loaded.source, url) }
}
