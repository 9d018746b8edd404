/** A reply of Redis: bulk strings as bytes, status lines as text, an error as a value. */
export type Reply = string | number | null | Buffer | Error | Reply[]

export type Argument = string | number | Uint8Array

/** A command as RESP: an array of bulk strings. */
export function encode(args: readonly Argument[]): Buffer {
  const parts = [Buffer.from(`*${args.length}\r\n`)]
  for (const arg of args) {
    const bytes = typeof arg === 'object' ? arg : Buffer.from(String(arg))
    parts.push(Buffer.from(`$${bytes.length}\r\n`), Buffer.from(bytes), CRLF)
  }
  return Buffer.concat(parts)
}

/** Cuts a stream of bytes into replies; an incomplete one waits for the next chunk. */
export class ReplyParser {
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0

  /** Takes the next bytes. Returns the replies that they complete; what is left waits for more. */
  push(chunk: Buffer): Reply[] {
    this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), chunk])
    this.#at = 0
    const replies: Reply[] = []
    for (;;) {
      const start = this.#at
      const reply = this.#read()
      if (reply === undefined) {
        this.#at = start
        return replies
      }
      replies.push(reply)
    }
  }

  /** Reads the next reply, by the sign that its first line begins with. Undefined if it is not complete. */
  #read(): Reply | undefined {
    const line = this.#line()
    if (line === undefined) return undefined
    const text = line.slice(1)
    if (line[0] === '+') return text
    if (line[0] === '-') return new Error(text)
    if (line[0] === ':') return Number(text)
    if (line[0] === '$') return Number(text) < 0 ? null : this.#bulk(Number(text))
    if (line[0] === '*') return Number(text) < 0 ? null : this.#array(Number(text))
    throw new Error(`no RESP2 reply begins with ${JSON.stringify(line.slice(0, 20))}`)
  }

  /** Reads up to the next line end. Undefined if there is none yet. */
  #line(): string | undefined {
    const end = this.#bytes.indexOf(CRLF, this.#at)
    if (end < 0) return undefined
    const line = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end + 2
    return line
  }

  /** Reads a string of so many bytes and the line end behind it. Undefined if they are not all there. */
  #bulk(length: number): Buffer | undefined {
    const end = this.#at + length
    if (this.#bytes.length < end + 2) return undefined
    const bytes = Buffer.from(this.#bytes.subarray(this.#at, end))
    this.#at = end + 2
    return bytes
  }

  /** Reads a list of so many replies. Undefined if they are not all there. */
  #array(length: number): Reply[] | undefined {
    const replies: Reply[] = []
    while (replies.length < length) {
      const reply = this.#read()
      if (reply === undefined) return undefined
      replies.push(reply)
    }
    return replies
  }
}

const CRLF = Buffer.from('\r\n')
