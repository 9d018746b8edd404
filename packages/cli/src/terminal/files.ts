import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { LogSource, Shelf } from '../index.js'
import { type Given, STDIN, optionTexts, usageError } from './arguments.js'
import { show } from './door.js'

/** The bytes of a file, or of stdin for the path `-`. Of a file nothing behind the byte `end` is read. */
export function bytesOf(path: string, signal: AbortSignal, end = Infinity): Readable {
  return path === STDIN ? addAbortSignal(signal, process.stdin) : fs.createReadStream(path, { signal, end })
}

/**
 * Refuses to write to a file that is read: to the file of --out, or stdout, if it is one of the `inputs`, by whatever path or link.
 * @throws {UsageError}
 */
export function refuseOverwriting(inputs: readonly string[], given: Given): void {
  const written = [placeOf(1), ...optionTexts(given, 'out').map(placeOf)].filter(Boolean)
  const both = inputs.find((path) => written.includes(placeOf(path === STDIN ? 0 : path)))
  if (both !== undefined) throw usageError(`'${both}' is read, so it cannot be written`)
}

/** The name of a file's place on its disk; undefined for a device or a socket, which may be both read and written. */
function placeOf(file: string | number): string | undefined {
  const options = { bigint: true, throwIfNoEntry: false } as const
  const stats = typeof file === 'string' ? fs.statSync(file, options) : fs.fstatSync(file, options)
  return stats && !stats.isCharacterDevice() && !stats.isSocket() ? `${stats.dev}:${stats.ino}` : undefined
}

/** The logs at these paths, or stdin if there is none, as names and streams of bytes, which are unpacked from gzip. */
export function sourcesOf(paths: readonly string[], signal: AbortSignal): readonly LogSource[] {
  return (paths.length > 0 ? paths : [STDIN]).map((path) => {
    return { name: path === STDIN ? 'stdin' : path, chunks: unpacked(bytesOf(path, signal)) }
  })
}

/**
 * Yields the bytes of a file, unpacked if its first two bytes are those of gzip. Each chunk is unpacked before the next is written
 * to `gunzip` (which then calls `continueReading`), so that all that is readable of a truncated or damaged file arrives before the error.
 */
async function* unpacked(chunks: Readable): AsyncGenerator<Buffer> {
  const unpackedPieces: Buffer[] = []
  let bytesRead = 0
  let failure: Error | undefined
  let continueReading: (value?: unknown) => void = () => {}
  const gunzip = createGunzip()
    .on('data', (piece: Buffer) => unpackedPieces.push(piece))
    .on('error', (error) => (failure = error))
    .on('close', () => continueReading()) // a write that fails, or bytes behind the end, call nothing else
  let isPacked: boolean | undefined
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    isPacked ??= chunk[0] === 0x1f && chunk[1] === 0x8b
    if (isPacked) await new Promise((resolve) => gunzip.write(chunk, (continueReading = resolve)))
    else unpackedPieces.push(chunk)
    yield* unpackedPieces.splice(0)
    if (failure) throw failure
    show(`${Math.round((bytesRead += chunk.length) / 1e6)} MB read`)
  }
  if (!isPacked) return
  if (!gunzip.closed) await new Promise((resolve) => gunzip.once('close', resolve).end())
  yield* unpackedPieces
  if (failure) throw failure
}

/** A shelf in a temporary file, which has a folder of its own, so that a log may be larger than memory. */
export class FileShelf implements Shelf {
  readonly #folder = fs.mkdtempSync(join(tmpdir(), 'sluice-'))
  readonly #file = fs.openSync(join(this.#folder, 'calls'), 'w+')
  #blocks = 0

  /** Appends a block to the file. All blocks have one size. */
  write(block: Uint8Array): void {
    fs.writeSync(this.#file, block, 0, block.length, this.#blocks++ * block.length)
  }

  /** Reads the block that was written as the `index`-th, counted from 0. */
  read(index: number, into: Uint8Array): void {
    fs.readSync(this.#file, into, 0, into.length, index * into.length)
  }

  /** Shows how far the deciding is, in percent. `times` is how often all calls have been read so far: twice in all. */
  progress(times: number): void {
    show(`${Math.round(50 * times)} % decided`)
  }

  /** Deletes the file and its folder. */
  close(): void {
    fs.closeSync(this.#file)
    fs.rmSync(this.#folder, { recursive: true })
  }
}
