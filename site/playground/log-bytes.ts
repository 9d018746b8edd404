/*
 * The bytes of a log, as a browser has them: read in pieces, and unpacked by what it brings for gzip, which takes one member of a file and
 * refuses the next. A file has several where packed logs were joined, or a server packs each buffer by itself.
 */

/**
 * The bytes of a file, unpacked. `progress` is called before each piece of it is read, with the part of it that was. A piece may be
 * overwritten once the next one is asked for.
 */
export async function* bytesOf(file: Blob, progress: (part: number) => void, length = 2 ** 18) {
  const [one, other] = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isPacked = one === 0x1f && other === 0x8b
  reader = isPacked ? undefined : readerOf(file)
  if (reader) return yield* filled(reader, file.size, progress, length)
  const pieces = split(file, isPacked, progress, length)
  for (let piece = await pieces.next(); !piece.done;) {
    /** Up to where a member ends; of a file that is not packed it is all. */
    const member = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        const { bytes, isLast } = piece.value as Piece
        controller.enqueue(bytes)
        piece = await pieces.next()
        if (isLast || piece.done) controller.close()
      },
    })
    const unpacked = isPacked ? member.pipeThrough(new DecompressionStream('gzip')) : member
    const bytes = unpacked.getReader()
    for (let next = await bytes.read(); !next.done; next = await bytes.read()) yield next.value
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

/** A file in pieces that fill one array again and again: an array for each takes a quarter as long as to read the lines in it. */
async function* filled(
  from: ReadableStreamBYOBReader,
  size: number,
  progress: (part: number) => void,
  length: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let room = new ArrayBuffer(length)
  for (let read = 0; read < size;) {
    progress(read / size)
    const { value } = await from.read(new Uint8Array(room))
    if (!value) return
    read += value.length
    room = value.buffer
    yield value
  }
}

interface Piece {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Whether a member of gzip ends here. */
  readonly isLast: boolean
}

/** A file in pieces of `length` bytes at most, of which none has bytes of two members of gzip. */
async function* split(
  file: Blob,
  isPacked: boolean,
  progress: (part: number) => void,
  length: number,
): AsyncGenerator<Piece> {
  for (let at = 0; at < file.size; at += length) {
    progress(at / file.size)
    const bytes = new Uint8Array(await file.slice(at, at + length + HEADER).arrayBuffer())
    const size = Math.min(length, bytes.length)
    for (let from = 0, to = 0; from < size; from = to) {
      do to = isPacked ? bytes.indexOf(0x1f, to + 1) : -1
      while (to > 0 && to < size && !isHeader(bytes, to))
      if (to < 0 || to > size) to = size
      yield { bytes: bytes.subarray(from, to), isLast: isPacked && isHeader(bytes, to) }
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
