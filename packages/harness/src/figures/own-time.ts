import { existsSync, openSync, readSync } from 'node:fs'

/*
 * Time that others take on a busy machine is not ours. Linux tells for each thread how long it ran, and how long it could
 * have run and another did; elsewhere both functions tell the time that passed.
 */
const FILE = `/proc/self/task/${process.pid}/schedstat`
const file = existsSync(FILE) ? openSync(FILE, 'r') : undefined
const text = Buffer.alloc(64)

/** Milliseconds that this thread has run. */
export function ranMs(): number {
  return file === undefined ? performance.now() : schedule(file).ranMs
}

/** Milliseconds that passed, without those in which this thread waited for its turn. */
export function ownMs(): number {
  return performance.now() - (file === undefined ? 0 : schedule(file).queuedMs)
}

/** Milliseconds that this thread ran, and waited while others did, since it began, as Linux counts them. */
function schedule(file: number): Record<'ranMs' | 'queuedMs', number> {
  process.cpuUsage() // brings the file up to date, which is up to 4 ms behind otherwise
  const length = readSync(file, text, 0, text.length, 0)
  const [ran, queued] = text.toString('latin1', 0, length).split(' ').map(Number) as [number, number]
  return { ranMs: ran / 1e6, queuedMs: queued / 1e6 }
}
