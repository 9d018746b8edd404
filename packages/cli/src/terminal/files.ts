import { closeSync, createReadStream, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { LogSource, Shelf } from '../index.js'

/** Stands for stdin among paths: the parser of arguments drops a bare `-`. */
export const STDIN = './-'

/** Logs by their paths; none is stdin. What is packed by gzip is unpacked, whatever its name. */
export function sourcesOf(
  paths: readonly string[],
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): readonly LogSource[] {
  return (paths.length > 0 ? paths : [STDIN]).map((path) => {
    const isStdin = path === STDIN
    const stream = isStdin
      ? addAbortSignal(signal, process.stdin)
      : createReadStream(path, { signal, highWaterMark: 2 ** 18 })
    stream.on('data', (chunk: Buffer) => onBytes(chunk.length)).pause()
    return { name: isStdin ? 'stdin' : path, chunks: unpacked(stream as AsyncIterable<Buffer>) }
  })
}

/**
 * What is packed is written piece by piece, each after the one before was unpacked, so that of a file that ends too early all
 * is there that can be had.
 */
async function* unpacked(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const ready: Buffer[] = []
  let failure: Error | undefined
  const gunzip = createGunzip()
    .on('data', (piece: Buffer) => ready.push(piece))
    .on('error', (error) => (failure = error))
  let isPacked: boolean | undefined
  for await (const chunk of chunks) {
    isPacked ??= chunk[0] === 0x1f && chunk[1] === 0x8b
    if (isPacked) await new Promise((resolve) => gunzip.write(chunk, resolve))
    else ready.push(chunk)
    yield* ready.splice(0)
    if (failure) throw failure
  }
  if (!isPacked) return
  await new Promise((resolve) => gunzip.once('close', resolve).end())
  yield* ready
  if (failure) throw failure
}

/** A shelf in a temporary file, which is made with the first block. */
export class FileShelf implements Shelf {
  #folder = ''
  #file = -1
  #size = 0
  #blocks = 0

  write(block: Uint8Array): void {
    if (this.#file < 0) {
      this.#folder = mkdtempSync(join(tmpdir(), 'sluice-'))
      this.#file = openSync(join(this.#folder, 'calls'), 'w+')
      this.#size = block.length
    }
    writeSync(this.#file, block, 0, this.#size, this.#blocks++ * this.#size)
  }

  read(index: number): Uint8Array {
    const block = new Uint8Array(this.#size)
    readSync(this.#file, block, 0, this.#size, index * this.#size)
    return block
  }

  close(): void {
    if (this.#file < 0) return
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true })
  }
}
