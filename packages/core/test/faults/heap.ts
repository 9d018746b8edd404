import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// Otherwise what typed arrays held counts until another thread has swept it, which on a busy machine comes later.
setFlagsFromString('--no-concurrent-array-buffer-sweeping')
export const collect = runInNewContext('gc') as () => void

/** Bytes in use after a collection: objects, and what typed arrays hold outside of the heap. */
export function bytesInUse(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
