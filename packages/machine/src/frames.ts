import { Buffer } from 'node:buffer' // the global is a getter

/*
 * A frame is one message between two processes: its length, a kind, a small number (the tag), numbers as little-endian
 * doubles, and a text. Many frames travel in one write. Texts are Latin-1 where that is possible and UTF-16 otherwise; in
 * UTF-8, keys that differ in lone surrogates alone would become equal.
 */
export interface Frame {
  readonly kind: number
  /** 0 to 65,535. */
  readonly tag: number
  readonly numbers: readonly number[]
  readonly text: string
}

/** A frame that no version of this protocol sends. The connection cannot be used any further. */
export class MalformedFrame extends Error {}

/** Collects frames, to be written at once. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #start = 0
  #end = 0

  /** Writes frames of at most `most` bytes. */
  constructor(private readonly most = MOST_BYTES) {}

  /** Whether no frame was added since the last `take`. */
  get isEmpty(): boolean {
    return this.#start === this.#end
  }

  /**
   * Writes a frame to the buffer: a header (`AT`), the numbers as doubles of 8 bytes, then the text, in Latin-1 or if it has other
   * characters in UTF-16. The tag is a small number whose meaning depends on the kind. In a call, for example, it says which list of
   * policies the call is about.
   * @throws {RangeError} for a frame that is too long.
   */
  add(kind: number, tag: number, numbers: readonly number[], text = ''): void {
    const isWide = WIDE.test(text)
    const textBytes = isWide ? 2 * text.length : text.length
    const bytes = HEADER_BYTES + 8 * numbers.length + textBytes
    if (bytes > this.most) throw new RangeError(`a frame must be at most ${this.most} bytes, got ${bytes}`)
    this.#makeRoom(bytes)
    const buffer = this.#buffer
    let offset = buffer.writeUInt32LE(bytes, this.#end)
    offset = buffer.writeUInt8(kind, offset)
    offset = buffer.writeUInt8(isWide ? 1 : 0, offset)
    offset = buffer.writeUInt16LE(tag, offset)
    offset = buffer.writeUInt16LE(numbers.length, offset)
    for (let i = 0; i < numbers.length; i++) offset = buffer.writeDoubleLE(numbers[i]!, offset)
    if (textBytes > 0) buffer.write(text, offset, textBytes, isWide ? 'utf16le' : 'latin1')
    this.#end += bytes
  }

  /**
   * Returns the bytes of all frames that were added since the last call, to be written to a socket. They are not copied; later
   * frames go behind them in the buffer and never over them.
   */
  take(): Buffer {
    const taken = this.#buffer.subarray(this.#start, this.#end)
    this.#start = this.#end
    return taken
  }

  /**
   * Makes room for this many bytes behind the last frame. A full buffer is replaced by a new one, and the frames that were not
   * taken yet are copied to it. The old buffer is not used again, as the socket may still be sending from it.
   */
  #makeRoom(bytes: number): void {
    if (this.#end + bytes <= this.#buffer.length) return
    const pending = this.#buffer.subarray(this.#start, this.#end)
    const buffer = Buffer.allocUnsafe(Math.max(BUFFER_BYTES, 2 * (pending.length + bytes)))
    pending.copy(buffer)
    this.#buffer = buffer
    this.#start = 0
    this.#end = pending.length
  }
}

/** Splits what arrives into frames. */
export class FrameReader {
  #rest: Buffer | undefined

  /** Reads frames of at most `most` bytes. */
  constructor(private readonly most = MOST_BYTES) {}

  /**
   * Takes the next bytes of the connection, and passes every frame that is complete now to `receive`, in order. The bytes of an
   * incomplete frame are kept (`#rest`) until the others arrive.
   * @throws {MalformedFrame} for a length or a count that cannot be.
   */
  push(chunk: Buffer, receive: (frame: Frame) => void): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    let start = 0
    while (bytes.length - start >= HEADER_BYTES) {
      const length = bytes.readUInt32LE(start + AT.length)
      if (length < HEADER_BYTES || length > this.most) {
        throw new MalformedFrame(`a frame of ${length} bytes`)
      }
      if (bytes.length - start < length) break
      receive(frameAt(bytes, start, length))
      start += length
    }
    this.#rest = start < bytes.length ? bytes.subarray(start) : undefined
  }
}

/**
 * Reads the frame of this length, in bytes, at `start`: its header (`AT`), its numbers, and the text in the rest.
 * @throws {MalformedFrame} if its count of numbers needs more bytes than it has.
 */
function frameAt(bytes: Buffer, start: number, length: number): Frame {
  const count = bytes.readUInt16LE(start + AT.count)
  const textAt = start + HEADER_BYTES + 8 * count
  const end = start + length
  if (textAt > end) throw new MalformedFrame(`${count} numbers in a frame of ${length} bytes`)
  const numbers: number[] = []
  for (let at = start + HEADER_BYTES; at < textAt; at += 8) numbers.push(bytes.readDoubleLE(at))
  const isWide = bytes[start + AT.isWide] === 1
  return {
    kind: bytes[start + AT.kind]!,
    tag: bytes.readUInt16LE(start + AT.tag),
    numbers,
    text: textAt === end ? '' : bytes.toString(isWide ? 'utf16le' : 'latin1', textAt, end),
  }
}

const HEADER_BYTES = 10
/** The places of what a header holds: the frame's length in bytes, its kind, whether its text is UTF-16, its tag, the count of its numbers. */
const AT = { length: 0, kind: 4, isWide: 5, tag: 6, count: 8 }
/** A key has at most 8,192 UTF-16 units, and a call of a semaphore at most 100 tickets. */
const MOST_BYTES = 2 ** 16
/** All records of operators, of many limiters, are one reply. */
export const MOST_REPLY_BYTES = 2 ** 28
const FIRST_BYTES = 512
const BUFFER_BYTES = 2 ** 14
/** A character beyond Latin-1. */
const WIDE = /[^\0-\xff]/
