import { LONGEST_MS, MOST_BYTES, parsed } from './other-side/json.js'
import type { RequestController } from './relay-controller.js'

/** A response that is held back until it is known whether the handler is to see it. Its body may decide that (`json`). */
export class HeldResponse {
  readonly #held: (() => void)[] = []
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  /** Whether the body has ended, or is cut off. */
  hasEnded = false
  isDropped = false
  #resolve!: (body: Uint8Array | undefined) => void
  readonly #body = new Promise<Uint8Array | undefined>((resolve) => (this.#resolve = resolve))
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(readonly controller: RequestController) {}

  /**
   * The body as JSON, once it is complete (`end`) and unpacked under its `Content-Encoding`; undefined if it is no JSON, is larger
   * than 64 KiB or takes longer than a second.
   */
  async json(encoding: string | undefined): Promise<unknown> {
    this.#timer ??= setTimeout(() => this.#resolve(undefined), LONGEST_MS)
    return parsed(unpacked(await this.#body, encoding))
  }

  /**
   * Keeps a piece of the body until `release`, which calls `passOn`: that hands the piece to the handler, or drops it if the
   * request is sent again. A body of more than 64 KiB is not read as JSON (`json` resolves with undefined), and undici is asked
   * to fetch no more of it until `release`.
   */
  data(chunk: Uint8Array, passOn: () => void): void {
    this.#held.push(passOn)
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes <= MOST_BYTES) return
    this.controller.pause()
    this.#resolve(undefined)
  }

  /** Notes that the body is complete: `json` can read it. `release` later calls `passOn`, which reports the end to the handler. */
  end(passOn: () => void): void {
    this.hasEnded = true
    this.#held.push(passOn)
    this.#resolve(Buffer.concat(this.#chunks))
  }

  /** Notes that the body is cut off: `json` resolves with undefined. `release` later calls `passOn`, which reports the failure. */
  fail(passOn: () => void): void {
    this.hasEnded = true
    this.#held.push(passOn)
    this.#resolve(undefined)
  }

  /**
   * Passes on what was kept of the response, in its order, when it is known whether the handler is to see it. Resumes a body that
   * `data` has paused at 64 KiB, unless the handler has paused it too, by its own controller (`handlerController`).
   */
  release(handlerController: Pick<RequestController, 'paused'>): void {
    clearTimeout(this.#timer)
    for (const passOn of this.#held) passOn()
    if (this.#bytes > MOST_BYTES && !handlerController.paused) this.controller.resume()
  }

  /** Forgets the response, because its request has failed: a verdict has no effect any more. */
  drop(): void {
    clearTimeout(this.#timer)
    this.isDropped = true
    this.#resolve(undefined)
  }
}

/** Undoes the content codings in `encoding`, the last one first. Undefined if one is unknown or fails, or beyond 64 KiB. */
function unpacked(packed: Uint8Array | undefined, encoding = 'identity'): Uint8Array | undefined {
  let bytes = packed
  try {
    for (const coding of encoding.toLowerCase().split(',').toReversed()) {
      bytes &&= unpackedOnce(bytes, coding.trim())
    }
    return bytes
  } catch {
    return undefined
  }
}

/** Undoes one content coding. zlib is loaded only here, because this package also runs on platforms without it. */
function unpackedOnce(bytes: Uint8Array, coding: string): Uint8Array | undefined {
  const zlib = process.getBuiltinModule('node:zlib') as Zlib
  const most = { maxOutputLength: MOST_BYTES }
  if (coding === 'identity') return bytes
  if (coding === 'gzip' || coding === 'x-gzip') return zlib.gunzipSync(bytes, most)
  if (coding === 'br') return zlib.brotliDecompressSync(bytes, most)
  if (coding === 'zstd') return zlib.zstdDecompressSync?.(bytes, most)
  if (coding !== 'deflate') return undefined
  // Some servers leave out the header of zlib, whose first half byte is the method of compression, 8.
  const hasZlibHeader = (bytes[0]! & 15) === 8
  return hasZlibHeader ? zlib.inflateSync(bytes, most) : zlib.inflateRawSync(bytes, most)
}

/** Node has zstd from 22.15 on. */
type Zlib = typeof import('node:zlib') & {
  readonly zstdDecompressSync?: typeof import('node:zlib').gunzipSync
}
