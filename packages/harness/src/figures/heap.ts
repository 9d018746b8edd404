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

/** Code that V8 compiles lies in the heap, and V8 lets go of it again: half a megabyte comes and goes for minutes. */
const COMPILERS = ['opt', 'sparkplug', 'flush-bytecode']

/** Runs `measured` while V8 compiles nothing: what the heap gains meanwhile is what the program keeps. */
export async function withoutCompilers<T>(measured: () => Promise<T>): Promise<T> {
  for (const name of COMPILERS) setFlagsFromString(`--no-${name}`)
  try {
    return await measured()
  } finally {
    for (const name of COMPILERS) setFlagsFromString(`--${name}`)
  }
}
