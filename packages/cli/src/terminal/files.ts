import { closeSync, createReadStream, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { LogSource, Shelf } from '../index.js'
import { STDIN } from './main.js'

/** Logs by their paths; none is stdin. What is packed by gzip is unpacked, whatever its name. */
export function sourcesOf(paths: readonly string[], signal: AbortSignal): readonly LogSource[] {
  return (paths.length > 0 ? paths : [STDIN]).map((path) => {
    if (path === STDIN) return { name: 'stdin', chunks: unpacked(addAbortSignal(signal, process.stdin)) }
    return { name: path, chunks: unpacked(createReadStream(path, { signal })) }
  })
}

/**
 * The bytes of a file, unpacked if it begins as gzip does. Each piece is unpacked before the next is written, so that
 * all that is readable of a truncated file arrives before the error. On a terminal the bytes read are shown each
 * second.
 */
async function* unpacked(chunks: Readable): AsyncGenerator<Buffer> {
  const ready: Buffer[] = []
  let [read, shownAt, failure] = [0, Date.now(), undefined as Error | undefined]
  const gunzip = createGunzip()
    .on('data', (piece: Buffer) => ready.push(piece))
    .on('error', (error) => (failure = error))
  let isPacked: boolean | undefined
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    isPacked ??= chunk[0] === 0x1f && chunk[1] === 0x8b
    if (isPacked) await new Promise((resolve) => gunzip.write(chunk, resolve))
    else ready.push(chunk)
    yield* ready.splice(0)
    if (failure) throw failure
    read += chunk.length
    if (!process.stderr.isTTY || Date.now() < shownAt + 1000) continue
    shownAt = Date.now()
    process.stderr.write(`\r${Math.round(read / 1e6)} MB read\u001b[K\r`)
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  if (!isPacked) return
  await new Promise((resolve) => gunzip.once('close', resolve).end())
  yield* ready
  if (failure) throw failure
}

/** A shelf in a temporary file. */
export class FileShelf implements Shelf {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  readonly #file = openSync(join(this.#folder, 'calls'), 'w+')
  #size = 0
  #blocks = 0

  /** Appends a block to the file. All blocks have one size. */
  write(block: Uint8Array): void {
    this.#size = block.length
    writeSync(this.#file, block, 0, this.#size, this.#blocks++ * this.#size)
  }

  /** Reads the block that was written as the `index`-th, counted from 0. */
  read(index: number): Uint8Array {
    const block = new Uint8Array(this.#size)
    readSync(this.#file, block, 0, this.#size, index * this.#size)
    return block
  }

  /** Deletes the file and the folder that was made for it. */
  close(): void {
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true })
  }
}
