import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoggedCall, LogSource, Reading, ReadOptions } from '@sluice/cli'
import { readLogs } from '@sluice/cli'

/** The bytes of a log among the fixtures. */
export function fixture(name: string): Buffer {
  return readFileSync(join(__dirname, 'logs', `${name}.txt`))
}

/** A log that arrives in these pieces. */
export function sourceOf(name: string, ...pieces: readonly (string | Uint8Array | Error)[]): LogSource {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (const piece of pieces) {
      if (piece instanceof Error) throw piece
      yield typeof piece === 'string' ? Buffer.from(piece) : piece
    }
  }
  return { name, chunks: chunks() }
}

/** Reads logs to their end. */
export async function readAll(
  sources: readonly LogSource[],
  options: Partial<ReadOptions> = {},
): Promise<{ readonly reading: Reading; readonly calls: readonly LoggedCall[] }> {
  const reading = await readLogs(sources, { selectors: [{}], ...options })
  const calls: LoggedCall[] = []
  for await (const batch of reading.batches) calls.push(...batch)
  return { reading, calls }
}

/** The lines that were read and skipped, which have to add up. */
export function sums({ ledger }: Reading): { lines: number; read: number; skipped: Record<string, number> } {
  const skipped = Object.fromEntries([...ledger.skipped].map(([reason, { count }]) => [reason, count]))
  return { lines: ledger.lines, read: ledger.read, skipped }
}

/** A line of the common log format. */
export function lineAt(second: number, address = '203.0.113.7', status = 200): string {
  const date = new Date(second * 1000)
  const [day, month, year] = date.toUTCString().split(' ').slice(1, 4)
  return `${address} - - [${day}/${month}/${year}:${date.toISOString().slice(11, 19)} +0000] "GET / HTTP/1.1" ${status} 1\n`
}
