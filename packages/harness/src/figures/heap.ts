import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let gc: (() => void) | undefined

/** Collects all garbage. */
export function collect(): void {
  if (!gc) {
    setFlagsFromString('--expose-gc')
    // Otherwise what typed arrays held counts until another thread has swept it, which on a busy machine comes later.
    setFlagsFromString('--no-concurrent-array-buffer-sweeping')
    gc = runInNewContext('gc') as () => void
  }
  gc()
}

/** Bytes in use after a collection: objects, and what typed arrays hold outside of the heap. */
export function bytesInUse(): number {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
