import { Session } from 'node:inspector/promises'

/** The parts of core of which it is told, by where their sources lie. */
const PARTS = {
  resilience: 'core/src/resilience/',
  leases: 'core/src/leases/',
  'group commit': 'core/src/stores/redis/group-commit.ts',
  semaphore: 'core/src/semaphore/',
  limiter: 'core/src/limiter/',
}
/** So many functions are named at most. */
const MOST_NAMES = 12

/**
 * Has V8 count what is run of the scripts that are compiled from now on. The returned function tells in lines how much of a bundle has been
 * run: of the functions of each part of core, and of their blocks, which V8 counts where they run more or less often than what is around.
 */
export async function startCoverage(bundle: string): Promise<() => Promise<string[]>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const { scriptId, functions } = result.find(({ url }) => url === bundle)!
    await session.post('Debugger.enable')
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
    // In a bundle its path stands above each source.
    const paths = [...scriptSource.matchAll(/^\/\/ (?:packages|node_modules)\/(.*)$/gm)]
    return Object.entries(PARTS).map(([part, where]) => {
      const all = functions.filter(({ ranges }) =>
        paths.findLast(({ index }) => index < ranges[0]!.startOffset)?.[1]!.startsWith(where),
      )
      const never = all.filter(({ ranges }) => ranges[0]!.count === 0)
      const blocks = all.flatMap(({ ranges }) => ranges)
      const names = never.flatMap(({ functionName }) => functionName || [])
      return (
        `  ${part}: ${all.length - never.length} of ${all.length} functions, ` +
        `${blocks.filter(({ count }) => count > 0).length} of ${blocks.length} blocks` +
        (names.length > 0 && names.length <= MOST_NAMES ? `; never ${names.join(', ')}` : '')
      )
    })
  }
}
