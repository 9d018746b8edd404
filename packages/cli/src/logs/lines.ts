import { copiedText } from '@sluice/core/internal'
import type { SkipReason } from './ledger.js'

/*
 * Bytes to lines. Bytes are cut at line ends before they are decoded, because no character of UTF-8 contains the byte of a line
 * end. A line that is too long is dropped while it arrives, so that memory stays bounded.
 */

/** A line whose text is not passed on: why, and how it begins, as it is quoted. */
export interface Refused {
  readonly reason: SkipReason
  readonly text: string
}

/** A line that is refused, with its first characters. They are a copy, as a text that is cut out of a line keeps the whole line. */
export function refused(reason: SkipReason, line: string): Refused {
  return { reason, text: copiedText(line.slice(0, QUOTED).replaceAll('\0', '')) }
}

export type LogLine = string | Refused

/** The text of a line, or how it begins. */
export const textOf = (line: LogLine): string => (typeof line === 'string' ? line : line.text)

/** Cuts the bytes of one source into lines. */
export class LineSplitter {
  readonly #decoder = new TextDecoder()
  /** Of UTF-16, as PowerShell writes it; undefined for UTF-8, and null before the first bytes. */
  #utf16Decoder: InstanceType<typeof TextDecoder> | undefined | null = null
  #rest: Uint8Array = EMPTY
  #isDropping = false

  /**
   * Takes the next bytes of the source, and returns the lines that end in them. The beginning of the next line is kept (`#rest`) up
   * to 256 KiB. A longer line is refused with its first bytes, and the rest of it is dropped (`#isDropping`).
   */
  push(piece: Uint8Array): LogLine[] {
    if (this.#utf16Decoder === null) this.#utf16Decoder = utf16DecoderOf(piece)
    const bytes = this.#utf16Decoder
      ? new TextEncoder().encode(this.#utf16Decoder.decode(piece, { stream: true }))
      : piece
    const start = this.#isDropping ? bytes.indexOf(NEWLINE) + 1 : 0
    if (this.#isDropping && start === 0) return []
    this.#isDropping = false
    const end = bytes.lastIndexOf(NEWLINE) + 1
    const lines: LogLine[] = []
    const hasLineEnd = end > start
    if (hasLineEnd) {
      // Only the line that began in `#rest` is copied, and not all bytes.
      const firstEnd = this.#rest.length > 0 ? bytes.indexOf(NEWLINE, start) + 1 : start
      this.#addLinesIn(joined(this.#rest, bytes.subarray(start, firstEnd)), lines)
      this.#addLinesIn(bytes.subarray(firstEnd, end), lines)
    }
    this.#rest = hasLineEnd ? bytes.slice(end) : joined(this.#rest, bytes.subarray(Math.max(start, end)))
    if (this.#rest.length > LONGEST) {
      lines.push(refused('longer than 256 KiB', this.#decoder.decode(this.#rest.subarray(0, QUOTED))))
      this.#rest = EMPTY
      this.#isDropping = true
    }
    return lines
  }

  /** Returns the last line of a source that has ended without a line end. */
  end(): LogLine[] {
    const rest = this.#rest
    this.#rest = EMPTY
    return this.#addLinesIn(rest, [])
  }

  /** Adds the lines in bytes to `lines`, without line ends, and returns them. A line is refused if it is too long or has NUL bytes. */
  #addLinesIn(bytes: Uint8Array, lines: LogLine[]): LogLine[] {
    const text = this.#decoder.decode(bytes)
    const hasNul = NUL.test(text) // in the bytes this would take ten times as long
    for (let from = 0; from < text.length;) {
      let to = text.indexOf('\n', from)
      if (to < 0) to = text.length
      const line = text.slice(from, text[to - 1] === '\r' && to > from ? to - 1 : to)
      if (line.length > LONGEST) lines.push(refused('longer than 256 KiB', line))
      else lines.push(hasNul && line.includes('\0') ? refused('NUL bytes', line) : line)
      from = to + 1
    }
    return lines
  }
}

/**
 * The decoder of a text in UTF-16; undefined for another text. UTF-16 begins with a mark, in the order of its bytes, or with two
 * characters whose second byte is 0.
 */
function utf16DecoderOf([first, second, third, fourth]: Uint8Array):
  InstanceType<typeof TextDecoder> | undefined {
  if ((first === 0xff && second === 0xfe) || (first! > 0 && second === 0 && third! > 0 && fourth === 0))
    return new TextDecoder('utf-16le')
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : undefined
}

/** The program that has packed a file which begins with these bytes; undefined for none that is known. */
export function packedBy(bytes: Uint8Array): string | undefined {
  const start = Array.from(bytes.subarray(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join('')
  const name = Object.keys(MAGIC).find((magic) => start.startsWith(magic))
  return name === undefined ? undefined : `a file of ${MAGIC[name]}`
}

const MAGIC: Readonly<Record<string, string>> = {
  '28b52ffd': 'zstd',
  fd377a58: 'xz',
  '504b0304': 'zip',
  '425a68': 'bzip2',
  '04224d18': 'lz4',
  '1f8b': 'gzip',
}

/** Returns a new array with the bytes of `one` and behind them those of `other`. */
function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}

const EMPTY = new Uint8Array(0)
const NEWLINE = 10
const NUL = /\0/
const LONGEST = 2 ** 18
const QUOTED = 160
