/*
 * The bytes of a log, as a browser has them: read in pieces, and unpacked by what it brings for gzip, which takes one member of a file and
 * refuses the next. A file has several where packed logs were joined, or a server packs each buffer by itself.
 */

/**
 * The bytes of a file, unpacked; all that can be read of a damaged one comes before the error. A piece may be overwritten once the next one
 * is asked for. `next` is called before each with the part of the file that was read.
 */
export async function* bytesOf(file: Blob, next: (part: number) => void, length = 2 ** 18) {
  const [one, other] = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isPacked = one === 0x1f && other === 0x8b
  reader = isPacked ? undefined : readerOf(file)
  let member: Member | undefined
  const pieces = reader ? filled(reader, file.size, length) : split(file, length)
  for await (const { bytes, isLast, part } of pieces) {
    if (isPacked) member ??= new Member()
    for await (const piece of member?.push(bytes, isLast) ?? [bytes]) {
      next(part)
      yield piece
    }
    if (isLast) member = undefined
  }
}

/** Held here, as Chromium 156 otherwise may collect it while a piece is read, which then never comes. */
let reader: ReadableStreamBYOBReader | undefined

/** What fills an array of ours with the bytes of a file; undefined in a browser that has it not. */
function readerOf(file: Blob): ReadableStreamBYOBReader | undefined {
  try {
    return file.stream().getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
}

/**
 * A file in pieces that fill one array again and again: an array for each takes a quarter as long as to read the lines in it. Each but the
 * last is full, so that a file is cut alike whenever it is read.
 */
async function* filled(from: ReadableStreamBYOBReader, size: number, length: number): AsyncGenerator<Piece> {
  let room = new ArrayBuffer(length)
  for (let read = 0, isOver = false; !isOver;) {
    let had = 0
    while (had < length && !isOver) {
      const { value, done } = await from.read(new Uint8Array(room, had))
      if (value) [room, had] = [value.buffer, had + value.length]
      isOver = done
    }
    if (had > 0) yield { bytes: new Uint8Array(room, 0, had), isLast: false, part: (read += had) / size }
  }
}

interface Piece {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Whether a member of gzip ends here. */
  readonly isLast: boolean
  /** Of the file, from 0 to 1. */
  readonly part: number
}

/** A file in pieces of `length` bytes at most, of which none has bytes of two members of gzip. */
export async function* split(file: Blob, length: number): AsyncGenerator<Piece> {
  for (let at = 0; at < file.size; at += length) {
    const bytes = new Uint8Array(await file.slice(at, at + length + HEADER).arrayBuffer())
    const size = Math.min(length, bytes.length)
    for (let from = 0, to = 0; from < size; from = to) {
      do to = bytes.indexOf(0x1f, to + 1)
      while (to > 0 && to < size && !isHeader(bytes, to))
      if (to < 0 || to > size) to = size
      const isLast = at + to === file.size || isHeader(bytes, to)
      yield { bytes: bytes.subarray(from, to), isLast, part: (at + to) / file.size }
    }
  }
}

const HEADER = 10

/** Whether a member begins here. All that RFC 1952 fixes is compared, as packed bytes resemble it by chance: once in 10^11. */
function isHeader(bytes: Uint8Array, at: number): boolean {
  const [one, other, method, flags = 0, , , , , how = 255, system = 254] = bytes.subarray(at, at + HEADER)
  if (one !== 0x1f || other !== 0x8b || method !== 8 || flags >= 32) return false
  return [0, 2, 4].includes(how) && (system <= 13 || system === 255)
}

/** One member of gzip. */
class Member {
  readonly #stream = new DecompressionStream('gzip')
  readonly #writer = this.#stream.writable.getWriter()
  readonly #reader = this.#stream.readable.getReader()
  #next = this.#reader.read()

  /** What comes out of the next bytes, and where they are the last ones, all that is left. */
  async *push(bytes: Uint8Array<ArrayBuffer>, isLast: boolean): AsyncGenerator<Uint8Array> {
    yield* this.#until(this.#writer.write(bytes))
    if (isLast) yield* this.#until(this.#writer.close().then(() => new Promise(() => {})))
  }

  /** What comes out until `done`, or until the end. */
  async *#until(done: Promise<void>): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = await Promise.race([this.#next, done])
      if (!next?.value) return
      this.#next = this.#reader.read()
      yield next.value
    }
  }
}
