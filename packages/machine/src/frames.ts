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

  get isEmpty(): boolean {
    return this.#start === this.#end
  }

  /**
   * Writes a frame to the buffer: its header, the numbers as doubles, then the text, one byte a character where that is
   * enough.
   * @throws {RangeError} for a frame that is too long.
   */
  add(kind: number, tag: number, numbers: readonly number[], text = ''): void {
    const isWide = WIDE.test(text)
    const textBytes = isWide ? 2 * text.length : text.length
    const bytes = HEADER_BYTES + 8 * numbers.length + textBytes
    if (bytes > MOST_BYTES) throw new RangeError(`a frame must be at most ${MOST_BYTES} bytes, got ${bytes}`)
    this.#reserve(bytes)
    const buffer = this.#buffer
    let at = buffer.writeUInt32LE(bytes, this.#end)
    at = buffer.writeUInt8(kind, at)
    at = buffer.writeUInt8(isWide ? 1 : 0, at)
    at = buffer.writeUInt16LE(tag, at)
    at = buffer.writeUInt16LE(numbers.length, at)
    for (let i = 0; i < numbers.length; i++) at = buffer.writeDoubleLE(numbers[i]!, at)
    if (textBytes > 0) buffer.write(text, at, textBytes, isWide ? 'utf16le' : 'latin1')
    this.#end += bytes
  }

  /** The bytes of all frames written since the last call. They may be sent as they are: nothing is written over them. */
  take(): Buffer {
    const taken = this.#buffer.subarray(this.#start, this.#end)
    this.#start = this.#end
    return taken
  }

  /** Makes room for this many bytes. A full buffer is replaced and not reused, as the socket may still be sending from it. */
  #reserve(bytes: number): void {
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

  /**
   * Passes every frame that is complete to `receive`, in order.
   * @throws {MalformedFrame} for a length or a count that cannot be.
   */
  push(chunk: Buffer, receive: (frame: Frame) => void): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    let at = 0
    while (bytes.length - at >= HEADER_BYTES) {
      const length = bytes.readUInt32LE(at)
      if (length < HEADER_BYTES || length > MOST_BYTES) {
        throw new MalformedFrame(`a frame of ${length} bytes`)
      }
      if (bytes.length - at < length) break
      receive(frameAt(bytes, at, length))
      at += length
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined
  }
}

/**
 * Reads the frame of this length at `start`.
 * @throws {MalformedFrame} if its count of numbers needs more bytes than it has.
 */
function frameAt(bytes: Buffer, start: number, length: number): Frame {
  const count = bytes.readUInt16LE(start + 8)
  const textAt = start + HEADER_BYTES + 8 * count
  const end = start + length
  if (textAt > end) throw new MalformedFrame(`${count} numbers in a frame of ${length} bytes`)
  const numbers: number[] = []
  for (let at = start + HEADER_BYTES; at < textAt; at += 8) numbers.push(bytes.readDoubleLE(at))
  const isWide = bytes[start + 5] === 1
  return {
    kind: bytes[start + 4]!,
    tag: bytes.readUInt16LE(start + 6),
    numbers,
    text: textAt === end ? '' : bytes.toString(isWide ? 'utf16le' : 'latin1', textAt, end),
  }
}

const HEADER_BYTES = 10
/** A key has at most 8,192 UTF-16 units, and a call of a semaphore at most 100 tickets. */
const MOST_BYTES = 2 ** 16
const FIRST_BYTES = 512
const BUFFER_BYTES = 2 ** 14
/** A character beyond Latin-1. */
const WIDE = /[^\0-\xff]/
